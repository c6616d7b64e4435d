"""Saved models: functions, variables and objects in a folder that needs none of the code that made them."""
