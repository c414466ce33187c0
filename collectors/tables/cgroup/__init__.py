"""Control groups: what each of them does on each device, how it is limited, and how long it waits."""
