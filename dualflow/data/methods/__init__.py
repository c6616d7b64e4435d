"""The methods of datasets, grouped by purpose."""
