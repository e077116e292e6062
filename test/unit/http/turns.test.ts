// Turns at a database: bounds by tenant and in all, and places that go round.
import { describe, expect, it } from 'vitest'
import { createTurns, type Turn } from '#shared/io/process/turns.ts'

const limits = { ofTenant: 1, inAll: 2, waiting: 8, waitMs: 60_000 }

/** Takes turns and notes who begins. */
function createLine(own: Partial<typeof limits> = {}) {
  const turns = createTurns({ ...limits, ...own })
  const begun: string[] = []
  const held = new Map<string, Turn>()
  const take = (name: string) =>
    turns.take(name[0]!).then((turn) => {
      if (turn === null) return begun.push(`${name} refused`)
      held.set(name, turn)
      return begun.push(name)
    })
  /** After everything that can begin has begun. */
  const settled = () => new Promise((resolve) => setImmediate(resolve))
  return { take, held, begun, settled }
}

describe('turns', () => {
  it('never go all to one tenant when there are more than one may have', async () => {
    const { take, begun, settled } = createLine()
    for (const name of ['a1', 'a2', 'b1']) void take(name)
    await settled()
    expect(begun).toEqual(['a1', 'b1'])
  })

  it('go round: a long queue of one tenant delays no other', async () => {
    const { take, begun, held, settled } = createLine({ inAll: 1 })
    for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'c1', 'b2']) void take(name)
    for (let n = 1; n <= 7; n++) {
      await settled()
      held.get(begun.at(-1)!)!.end()
    }
    expect(begun).toEqual(['a1', 'a2', 'b1', 'c1', 'a3', 'b2', 'a4'])
  })

  it('leave their place to others while a query ends, but not to their own tenant', async () => {
    const { take, begun, held, settled } = createLine({ inAll: 1 })
    for (const name of ['a1', 'a2', 'b1']) void take(name)
    await settled()
    held.get('a1')!.yieldPlace()
    held.get('a1')!.yieldPlace()
    await settled()
    held.get('b1')!.end()
    await settled()
    expect(begun).toEqual(['a1', 'b1'])
    held.get('a1')!.end()
    held.get('a1')!.end()
    await settled()
    expect(begun).toEqual(['a1', 'b1', 'a2'])
  })

  it('are refused beyond what may wait, and after the wait', async () => {
    const { take, begun, settled } = createLine({ waiting: 1, waitMs: 10 })
    const waited = [take('a1'), take('a2'), take('a3')]
    await settled()
    expect(begun).toEqual(['a1', 'a3 refused'])
    await Promise.all(waited)
    expect(begun).toEqual(['a1', 'a3 refused', 'a2 refused'])
  })
})
