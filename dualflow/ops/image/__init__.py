"""Images: resizing, cropping, colours, quality measures, boxes, and random augmentation."""
