"""A sweep on the screen: its session, its rows and its words, without drawing."""
