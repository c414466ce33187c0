"""What several screens use: their base class, dialogs, pages and charts."""
