"""One step of a recurrence: its equations, its gates, and its derivatives in closed form."""
