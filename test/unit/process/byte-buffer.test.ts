/** Bytes that arrive in pieces, in one buffer. */
import { expect, it } from 'vitest'
import { createByteBuffer } from '#shared/io/process/byte-buffer.ts'

it('keeps the bytes of any pieces, and twice their memory at most', () => {
  const buffer = createByteBuffer(65_536)
  let kept = 0
  for (let n = 0; n < 65_536; n++) kept += buffer.add(Buffer.of(n % 251))
  expect(kept).toBe(65_536)
  expect(buffer.take()).toEqual(Buffer.from(Array.from({ length: 65_536 }, (_, n) => n % 251)))
  expect(() => buffer.add(Buffer.of(1))).toThrow(RangeError)
})

it('does not keep the buffer that a piece is a part of, nor spare room', () => {
  const large = Buffer.alloc(100_000, 'x')
  const buffer = createByteBuffer(65_536)
  expect(buffer.add(large.subarray(0, 10))).toBe(4_096)
  large.fill('y')
  expect(buffer.take()).toEqual(Buffer.alloc(10, 'x'))
  buffer.clear()
  expect([buffer.length(), buffer.take()]).toEqual([0, Buffer.alloc(0)])
})
