"""The pages of the dashboard: what each of them shows.  ``addons/dashboard.py`` serves them."""
