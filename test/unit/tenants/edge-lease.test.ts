/** The credential lease alone; `faults/machines/lease.ts` has it against a model of the bucket. */
import { describe, expect, it } from 'vitest'
import { createEdgeLease } from '../../../shared/io/tenants/directory/edge-lease.ts'

const leaseMs = 2_000

function createBench(announce: (applied: number) => Promise<number>) {
  const clock = { nowMs: 1_000 }
  const outcomes: string[] = []
  let currents = 0
  const lease = createEdgeLease({
    announce,
    onCurrent: () => currents++,
    onAnnounced: (outcome) => outcomes.push(outcome),
    nowMs: () => clock.nowMs,
    leaseMs,
  })
  return { lease, clock, outcomes, currents: () => currents }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

describe('a lease', () => {
  it('is invalid until an announcement has come back through the watch', async () => {
    const { lease, currents } = createBench(async () => 5)
    lease.restart()
    lease.renew()
    await turn()
    expect(lease.valid()).toBe(false)
    lease.applied(4)
    expect(lease.valid()).toBe(false)
    lease.applied(5)
    expect(lease.valid()).toBe(true)
    expect(currents()).toBe(1)
  })

  it('starts when the announcement is sent, not when it comes back', async () => {
    let stored = (_revision: number) => {}
    const { lease, clock } = createBench(
      () => new Promise((resolve) => (stored = resolve as typeof stored)),
    )
    lease.renew()
    clock.nowMs += 900
    stored(1)
    await turn()
    clock.nowMs += 900
    lease.applied(1)
    expect(lease.valid()).toBe(true)
    clock.nowMs += 199
    expect(lease.valid()).toBe(true)
    clock.nowMs += 1
    expect(lease.valid()).toBe(false)
  })

  it('is not proven by an announcement from before the current watch', async () => {
    let stored = (_revision: number) => {}
    const { lease } = createBench(
      () => new Promise((resolve) => (stored = resolve as typeof stored)),
    )
    lease.renew()
    lease.restart()
    stored(1)
    await turn()
    lease.applied(9)
    expect(lease.valid()).toBe(false)
  })

  it('is not proven by one that was stored, and not seen, before the current watch', async () => {
    const { lease } = createBench(async () => 5)
    lease.renew()
    await turn()
    lease.restart()
    lease.applied(9)
    expect(lease.valid()).toBe(false)
  })

  it('ends at once when it is dropped, and a late proof does not renew it', async () => {
    const { lease } = createBench(async () => 1)
    lease.renew()
    await turn()
    lease.applied(1)
    lease.drop()
    expect(lease.valid()).toBe(false)
    lease.applied(2)
    expect(lease.valid()).toBe(false)
  })

  it('stays valid when the watch restarts, until it expires', async () => {
    const { lease, clock } = createBench(async () => 1)
    lease.renew()
    await turn()
    lease.applied(1)
    lease.restart()
    expect(lease.valid()).toBe(true)
    clock.nowMs += leaseMs
    expect(lease.valid()).toBe(false)
  })

  it('announces the active revision, not the progress of a new watch', async () => {
    const announced: number[] = []
    let revision = 10
    const { lease } = createBench(async (applied) => {
      announced.push(applied)
      return ++revision
    })
    lease.renew()
    await turn()
    lease.applied(11)
    await turn()
    lease.applied(17)
    lease.restart()
    lease.applied(3)
    lease.renew()
    await turn()
    expect(announced).toEqual([0, 11, 17])
  })

  it('announces once more after any number of changes meanwhile', async () => {
    let open: ((revision: number) => void)[] = []
    const { lease, outcomes } = createBench(() => new Promise((resolve) => open.push(resolve)))
    lease.renew()
    lease.announceChange()
    lease.announceChange()
    lease.announceChange()
    open.shift()!(1)
    await turn()
    expect(open).toHaveLength(1)
    open.shift()!(2)
    await turn()
    expect(open).toHaveLength(0)
    expect(outcomes).toEqual(['stored', 'stored'])
    open = []
  })

  it('does not repeat a failed announcement in a tight loop', async () => {
    let tries = 0
    const { lease, outcomes } = createBench(async () => {
      tries++
      throw new Error('no server')
    })
    lease.announceChange()
    lease.announceChange()
    await turn()
    expect(tries).toBe(1)
    expect(outcomes).toEqual(['failed'])
  })
})
