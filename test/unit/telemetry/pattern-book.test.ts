import { describe, expect, it } from 'vitest'
import type { Signals } from '#shared/core/signals/signal-definition.ts'
import { signalCatalog } from '#shared/core/signals/signals.ts'
import { createPatternBook } from '#shared/io/telemetry/pattern-book.ts'

const names = Object.keys(signalCatalog.tamper).slice(0, 13)

/** Signals with a pattern that no other number below 8,192 gives. */
function toSignals(n: number): Signals {
  const tamper = Object.fromEntries(names.map((name, bit) => [name, ((n >> bit) & 1) === 1]))
  return { root: {}, emulator: {}, debugger: {}, tamper, ecosystem: {}, network: {} } as Signals
}

describe('the pattern book', () => {
  it('lists a pattern as new once, until it is stored', () => {
    const book = createPatternBook(() => 0)
    const id = book.find('acme', toSignals(1))
    expect(book.find('acme', toSignals(1))).toBe(id)
    expect(book.listNew().map((one) => [one.tenantId, one.id])).toEqual([['acme', id]])
    book.markStored(book.listNew())
    expect(book.find('acme', toSignals(1))).toBe(id)
    expect(book.listNew()).toEqual([])
  })

  it('counts new patterns of a tenant against that tenant alone', () => {
    const book = createPatternBook(() => 0)
    for (let n = 0; n < 8_000; n++) book.find('globex', toSignals(n))
    expect(book.find('globex', toSignals(8_001))).toBe('')
    expect(book.find('acme', toSignals(8_001))).not.toBe('')
    expect(book.listNew()).toHaveLength(5_001)
  })

  it('drops the patterns of the least recently used tenant, and no others', () => {
    const book = createPatternBook(() => 0)
    const known = Array.from({ length: 4_999 }, (_, n) => toSignals(n))
    const use = (tenantId: string) => {
      for (const signals of known) book.find(tenantId, signals)
      const fresh = book.listNew().length
      book.markStored(book.listNew())
      return fresh
    }
    for (let tenant = 0; tenant < 40; tenant++) {
      expect(use(`tenant-${tenant}`)).toBe(4_999)
      // One event is a use.
      book.find('tenant-0', toSignals(0))
      expect(book.listNew()).toEqual([])
    }
    expect(use('tenant-40')).toBe(4_999)
    expect(use('tenant-0')).toBe(0)
    expect(use('tenant-1')).toBe(4_999)
  })

  it('lists the patterns of a tenant as new again after a month', () => {
    let nowMs = 0
    const book = createPatternBook(() => nowMs)
    book.find('acme', toSignals(1))
    book.markStored(book.listNew())
    nowMs = 30 * 24 * 3_600_000 - 1
    book.find('acme', toSignals(1))
    book.find('acme', toSignals(2))
    expect(book.listNew()).toHaveLength(1)
    book.markStored(book.listNew())
    nowMs += 1
    book.find('acme', toSignals(1))
    book.find('acme', toSignals(2))
    expect(book.listNew()).toHaveLength(2)
  })
})
