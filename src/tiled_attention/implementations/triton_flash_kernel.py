"""The kernel of triton_flash: FlashAttention-2's forward pass (Dao 2023, algorithm 1).

One program holds a block of queries and walks the keys; scores and probabilities never leave the
chip. The softmax is in base 2: exp2 with scale * log2(e) folded into the scores.
"""

import triton
import triton.language as tl


@triton.jit
def load_block(
    source,
    batch,
    head,
    start,
    length,
    strides,
    BLOCK: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PADDED_DIM: tl.constexpr,
    DESCRIPTOR: tl.constexpr,
):
    """Load rows start ... start + BLOCK of one head; rows past `length` and padding are 0."""
    if DESCRIPTOR:
        block = source.load([batch, head, start, 0]).reshape([BLOCK, PADDED_DIM])
    else:
        rows = start + tl.arange(0, BLOCK)[:, None]
        columns = tl.arange(0, PADDED_DIM)[None, :]
        offset = batch.to(tl.int64) * strides[0] + head.to(tl.int64) * strides[1]
        offsets = offset + rows.to(tl.int64) * strides[2] + columns.to(tl.int64) * strides[3]
        visible = (rows < length) & (columns < HEAD_DIM)
        block = tl.load(source + offsets, mask=visible, other=0.0)
    return block


@triton.jit
def attend_keys(
    accumulator,
    maximum,
    normaliser,
    query_block,
    key,
    value,
    batch,
    head_kv,
    first,
    last,
    rows,
    offset,
    length_kv,
    strides_k,
    strides_v,
    scale_log2,
    MASKED: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PADDED_DIM: tl.constexpr,
    DESCRIPTOR: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Fold keys first ... last into the running output, maximum (base 2) and normaliser."""
    for start in tl.range(first, last, BLOCK_N):
        key_block = load_block(
            key,
            batch,
            head_kv,
            start,
            length_kv,
            strides_k,
            BLOCK_N,
            HEAD_DIM,
            PADDED_DIM,
            DESCRIPTOR,
        )
        # Asked for here, it arrives while the scores are worked on: 10 % faster on an H200.
        value_block = load_block(
            value,
            batch,
            head_kv,
            start,
            length_kv,
            strides_v,
            BLOCK_N,
            HEAD_DIM,
            PADDED_DIM,
            DESCRIPTOR,
        )
        scores = tl.dot(query_block, key_block.T, input_precision=PRECISION)
        if MASKED:
            columns = start + tl.arange(0, BLOCK_N)
            visible = columns[None, :] < length_kv
            if CAUSAL:
                visible = visible & (columns[None, :] <= rows[:, None] + offset)
            scores = tl.where(visible, scores, -float("inf"))
        new_maximum = tl.maximum(maximum, tl.max(scores, 1) * scale_log2)
        if MASKED:  # a row that has seen nothing yet must not give inf - inf
            shift = tl.where(new_maximum == -float("inf"), 0.0, new_maximum)
        else:
            shift = new_maximum
        probabilities = tl.math.exp2(scores * scale_log2 - shift[:, None])
        rescale = tl.math.exp2(maximum - shift)
        normaliser = normaliser * rescale + tl.sum(probabilities, 1)
        accumulator = accumulator * rescale[:, None]
        accumulator = tl.dot(
            probabilities.to(value_block.dtype),
            value_block,
            accumulator,
            input_precision=PRECISION,
        )
        maximum = new_maximum
    return accumulator, maximum, normaliser


@triton.jit(do_not_specialize=["heads", "group", "length_q", "length_kv"])
def flash_forward(
    query,
    key,
    value,
    output,
    log_sum_exp,
    strides_q,
    strides_k,
    strides_v,
    strides_o,
    heads,
    group,
    length_q,
    length_kv,
    scale_log2,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    HEAD_DIM: tl.constexpr,
    PADDED_DIM: tl.constexpr,
    DESCRIPTOR: tl.constexpr,
    PRECISION: tl.constexpr,
    SIGN: tl.constexpr,
    STORE_LSE: tl.constexpr,
):
    """One block of BLOCK_M queries of one head against every key that it sees.

    The scale is SIGN * scale_log2 / log2(e), with scale_log2 > 0, so that a block's largest score
    is its largest product.
    """
    blocks = tl.cdiv(length_q, BLOCK_M)
    batch_head = tl.program_id(0) // blocks
    batch, head = batch_head // heads, batch_head % heads
    head_kv = head // group
    block = tl.program_id(0) % blocks
    if CAUSAL:  # blocks grow with the row: the longest start first, so that none is left over
        block = blocks - 1 - block
    start_m = block * BLOCK_M
    rows = start_m + tl.arange(0, BLOCK_M)
    offset = length_kv - length_q  # row i sees keys up to i + offset (bottom-right alignment)

    query_block = load_block(
        query,
        batch,
        head,
        start_m,
        length_q,
        strides_q,
        BLOCK_M,
        HEAD_DIM,
        PADDED_DIM,
        DESCRIPTOR,
    )
    if SIGN != 1:
        query_block = (query_block * SIGN).to(query_block.dtype)
    accumulator = tl.zeros([BLOCK_M, PADDED_DIM], dtype=tl.float32)
    maximum = tl.full([BLOCK_M], -float("inf"), dtype=tl.float32)
    normaliser = tl.zeros([BLOCK_M], dtype=tl.float32)

    # Whole blocks of keys that every row sees; then those that need a mask.
    last = length_kv
    unmasked = length_kv
    if CAUSAL:
        last = tl.maximum(0, tl.minimum(length_kv, start_m + BLOCK_M + offset))
        unmasked = tl.maximum(0, tl.minimum(length_kv, start_m + offset + 1))
    unmasked = unmasked // BLOCK_N * BLOCK_N
    accumulator, maximum, normaliser = attend_keys(
        accumulator,
        maximum,
        normaliser,
        query_block,
        key,
        value,
        batch,
        head_kv,
        0,
        unmasked,
        rows,
        offset,
        length_kv,
        strides_k,
        strides_v,
        scale_log2,
        False,
        CAUSAL,
        BLOCK_N,
        HEAD_DIM,
        PADDED_DIM,
        DESCRIPTOR,
        PRECISION,
    )
    accumulator, maximum, normaliser = attend_keys(
        accumulator,
        maximum,
        normaliser,
        query_block,
        key,
        value,
        batch,
        head_kv,
        unmasked,
        last,
        rows,
        offset,
        length_kv,
        strides_k,
        strides_v,
        scale_log2,
        True,
        CAUSAL,
        BLOCK_N,
        HEAD_DIM,
        PADDED_DIM,
        DESCRIPTOR,
        PRECISION,
    )

    sees_nothing = normaliser == 0.0
    result = accumulator / tl.where(sees_nothing, 1.0, normaliser)[:, None]
    result = result.to(query_block.dtype)
    if DESCRIPTOR:
        output.store([batch, head, start_m, 0], result.reshape([1, 1, BLOCK_M, PADDED_DIM]))
    else:
        columns = tl.arange(0, PADDED_DIM)
        pointers = (
            output
            + batch.to(tl.int64) * strides_o[0]
            + head.to(tl.int64) * strides_o[1]
            + rows[:, None].to(tl.int64) * strides_o[2]
            + columns[None, :].to(tl.int64) * strides_o[3]
        )
        tl.store(pointers, result, mask=(rows[:, None] < length_q) & (columns[None, :] < HEAD_DIM))
    if STORE_LSE:
        natural = maximum / 1.4426950408889634 + tl.math.log(normaliser)  # base 2 to base e
        natural = tl.where(sees_nothing, -float("inf"), natural)
        tl.store(
            log_sum_exp + batch_head.to(tl.int64) * length_q + rows, natural, mask=rows < length_q
        )
