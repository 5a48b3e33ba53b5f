"""Frames through an MQTT broker: nobody listens, and everybody who reaches the broker reaches everybody."""
