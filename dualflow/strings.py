"""Functions of strings: ``df.strings``."""

from typing import TYPE_CHECKING

from dualflow.core.namespace import publish as _publish

if TYPE_CHECKING:
    from dualflow.ops.text.hash_buckets import to_hash_bucket as to_hash_bucket
    from dualflow.ops.text.hash_buckets import to_hash_bucket_fast as to_hash_bucket_fast
    from dualflow.ops.text.hash_buckets import to_hash_bucket_strong as to_hash_bucket_strong
    from dualflow.ops.text.joins import format as format
    from dualflow.ops.text.joins import join as join
    from dualflow.ops.text.joins import reduce_join as reduce_join
    from dualflow.ops.text.letters import length as length
    from dualflow.ops.text.letters import lower as lower
    from dualflow.ops.text.letters import strip as strip
    from dualflow.ops.text.letters import upper as upper
    from dualflow.ops.text.ngrams import ngrams as ngrams
    from dualflow.ops.text.numbers import as_string as as_string
    from dualflow.ops.text.numbers import to_number as to_number
    from dualflow.ops.text.patterns import regex_full_match as regex_full_match
    from dualflow.ops.text.patterns import regex_replace as regex_replace
    from dualflow.ops.text.splitting import bytes_split as bytes_split
    from dualflow.ops.text.splitting import split as split
    from dualflow.ops.text.substrings import substr as substr
    from dualflow.ops.text.unicode_strings import unicode_decode as unicode_decode
    from dualflow.ops.text.unicode_strings import unicode_decode_with_offsets as unicode_decode_with_offsets
    from dualflow.ops.text.unicode_strings import unicode_encode as unicode_encode
    from dualflow.ops.text.unicode_strings import unicode_split as unicode_split
    from dualflow.ops.text.unicode_strings import unicode_split_with_offsets as unicode_split_with_offsets
    from dualflow.ops.text.unicode_strings import unicode_transcode as unicode_transcode

_publish(
    globals(),
    lazy={
        "dualflow.ops.text.hash_buckets": "to_hash_bucket to_hash_bucket_fast to_hash_bucket_strong",
        "dualflow.ops.text.joins": "format join reduce_join",
        "dualflow.ops.text.letters": "length lower strip upper",
        "dualflow.ops.text.ngrams": "ngrams",
        "dualflow.ops.text.numbers": "as_string to_number",
        "dualflow.ops.text.splitting": "bytes_split split",
        "dualflow.ops.text.substrings": "substr",
        "dualflow.ops.text.patterns": "regex_full_match regex_replace",
        "dualflow.ops.text.unicode_strings": (
            "unicode_decode unicode_decode_with_offsets unicode_encode unicode_split "
            "unicode_split_with_offsets unicode_transcode"
        ),
    },
)
