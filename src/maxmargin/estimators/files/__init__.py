"""Files of any size as the data of estimators."""
