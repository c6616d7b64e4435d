"""Files of records, and the messages in them: TFRecord, ``Example``, ``TensorProto``."""
