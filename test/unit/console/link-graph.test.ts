// What a graph of links shows: never more nodes than are allowed, every line between two of them.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  findNext,
  graphNodesMax,
  toAlertsText,
  toGraph,
  toVerdict,
} from '../../../services/console/web/pages/entities/graph/nodes.ts'

const anyId = fc.integer({ min: 0, max: 400 }).map(String)
const anyLinked = fc.uniqueArray(
  fc.record({
    id: anyId,
    shared: fc.uniqueArray(fc.record({ id: anyId }), { maxLength: 10, selector: ({ id }) => id }),
    sessions: fc.integer({ min: 0, max: 3 }),
  }),
  { maxLength: 200, selector: ({ id }) => id },
)

describe('a graph of links', () => {
  it('has the subject, each linked one at most once, and at most 200 nodes', () => {
    fc.assert(
      fc.property(anyLinked, (linked) => {
        const { nodes, lines, linkedShown } = toGraph({ kind: 'device', id: '0' }, linked)
        expect(nodes.length).toBeLessThanOrEqual(graphNodesMax)
        expect(nodes[0]).toMatchObject({ id: '0', role: 'subject' })
        const shown = nodes.filter(({ role }) => role === 'linked')
        expect(shown).toHaveLength(linkedShown)
        const names = nodes.map(({ role, id }) => `${role} ${id}`)
        expect(new Set(names).size).toBe(nodes.length)
        // Every node is reached from the subject.
        const reached = new Set([0])
        for (let before = -1; before !== reached.size; ) {
          before = reached.size
          for (const { from, to } of lines) if (reached.has(from)) reached.add(to)
        }
        expect(reached.size).toBe(nodes.length)
        for (const { from, to, sessions } of lines.filter(
          ({ to }) => nodes[to]!.role === 'linked',
        )) {
          const one = linked.find(({ id }) => id === nodes[to]!.id)!
          if (from === 0) expect(sessions).toBe(one.sessions)
          else expect(one.shared.map(({ id }) => id)).toContain(nodes[from]!.id)
        }
      }),
    )
  })

  it('says risk and verdict of each node, and which has no alerts', () => {
    const verdicts = { open: 2, reviewed: 1, confirmed: 0, false_positive: 0 }
    const alerts = [
      { kind: 'device' as const, id: 'd-1', risk_score: 82, ...verdicts },
      { kind: 'user' as const, id: 'u', risk_score: 40, ...verdicts, confirmed: 1 },
      { kind: 'user' as const, id: 'd', risk_score: 7, ...verdicts },
    ]
    const linked = [{ id: 'd-1', shared: [{ id: 'u' }], sessions: 0 }]
    const { nodes } = toGraph({ kind: 'device', id: 'd' }, linked, alerts)
    expect(
      nodes.map((node) => [node.id, toVerdict(node.alerts), toAlertsText(node.alerts)]),
    ).toEqual([
      // Of another kind than the user of the same id.
      ['d', 'none', 'no alerts'],
      ['d-1', 'open', 'risk 82, 3 alerts, 2 open'],
      ['u', 'confirmed', 'risk 40, 4 alerts, 1 confirmed, 2 open'],
    ])
    const cleared = { ...alerts[0]!, open: 0 }
    expect(toVerdict(cleared)).toBe('cleared')
  })

  it('leaves out what has no room, and says how many it shows', () => {
    const linked = Array.from({ length: 200 }, (_, n) => {
      return { id: `d-${n}`, shared: [{ id: 'u' }], sessions: 0 }
    })
    const { nodes, linkedShown } = toGraph({ kind: 'device', id: 'd' }, linked)
    expect([nodes.length, linkedShown]).toEqual([200, 198])
  })

  it('is walked by arrow keys, to the nearest node where the key points', () => {
    const places = [
      { x: 0, y: 0 },
      { x: 10, y: 1 },
      { x: 5, y: 40 },
      { x: -3, y: -1 },
    ]
    const keys = ['ArrowRight', 'ArrowLeft', 'ArrowDown', 'ArrowUp', 'Enter']
    expect(keys.map((key) => findNext(places, 0, key))).toEqual([1, 3, 1, 3, null])
    expect(findNext(places, 3, 'ArrowLeft')).toBeNull()
  })
})
