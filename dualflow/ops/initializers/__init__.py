"""How variables begin: functions of a shape and a dtype."""
