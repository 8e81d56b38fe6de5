"""HTTP: takes uploads, cleans and keys their rows, serves answers and the dashboard."""
