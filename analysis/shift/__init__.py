"""How far contexts of training are from those that a policy meets, turn by turn."""
