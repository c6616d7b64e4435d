"""Images: sizes, places, colours, measures, boxes, and random changes of them."""
