"""The methods of datasets, by what they are for."""
