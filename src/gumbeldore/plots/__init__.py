"""Pictures. matplotlib is imported when a picture is drawn, not before."""
