"""How human a user is: what they do, how they write, whether they can be told from people."""
