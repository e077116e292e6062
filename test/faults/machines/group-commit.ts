/**
 * Group commit on a model of JetStream: publishes are stored, lost, refused, stored with a lost
 * acknowledgement, or stored after the edge has stopped waiting, in every order. An event counts as
 * stored only when it is stored, each is settled once, and an id always has the same content.
 * Messages are sent in the order of their events, and every bound holds.
 */
import fc from 'fast-check'
import {
  createGroupCommit,
  toWaiterBytes,
  type Waiter,
} from '../../../services/ingest/group-commit.ts'
import {
  anyCommands,
  demand,
  type MachineOptions,
  type MachineReport,
  type Note,
  raceCommands,
  runMachine,
  toCommand,
} from './run-machine.ts'

type Named = Waiter & { name: string }
type Fate = 'stored' | 'ack lost' | 'late' | 'lost' | 'refused'

const limits = {
  batchEventsMax: 4,
  batchBytesMax: 400,
  publishesInFlightMax: 2,
  lingerMs: 5,
  lingerUntilEvents: 3,
  waitingEventsMax: 12,
  waitingBytesMax: 2_000,
  publishTimeoutMs: 2_000,
  publishAttemptMs: 700,
}

const namesIn = (message: string) =>
  (JSON.parse(message) as { name: string }[]).map(({ name }) => name)

/** One history: the group commit and the broker. */
function createHistory(scheduler: fc.Scheduler, nextFate: () => Fate, note: Note) {
  let nowMs = 0
  let ids = 0
  /** The messages of JetStream by id; the first bytes under an id count. */
  const broker = new Map<string, string>()
  const sent = new Map<string, string>()
  const taken = new Set<string>()
  const changed: string[] = []
  const settled = new Map<string, string | null>()
  let inFlight = 0
  let mostInFlight = 0
  const turn = (what: string) => scheduler.schedule(Promise.resolve(), what)

  const store = (batchId: string, bytes: string) => {
    const duplicate = broker.has(batchId)
    if (!duplicate) broker.set(batchId, bytes)
    else note('duplicate')
    return { duplicate, sequence: broker.size }
  }
  const holdersOf = (name: string) =>
    [...broker.values()].filter((bytes) => bytes.includes(`"${name}"`)).length

  const commit = createGroupCommit<Named>({
    publish: async (message, batchId, timeoutMs) => {
      const bytes = Buffer.from(message).toString()
      // Checked at the end: an error here would count as the broker's.
      if ((sent.get(batchId) ?? bytes) !== bytes) changed.push(batchId)
      if (sent.has(batchId)) note('retry')
      sent.set(batchId, bytes)
      const fate = nextFate()
      note(fate)
      mostInFlight = Math.max(mostInFlight, ++inFlight)
      await turn(`publish: ${fate}`)
      inFlight--
      if (fate === 'refused') throw Object.assign(new Error(fate), { final: true, fault: 'full' })
      if (fate === 'stored') return store(batchId, bytes)
      if (fate === 'ack lost') store(batchId, bytes)
      if (fate === 'late') void turn('stored late').then(() => store(batchId, bytes))
      nowMs += timeoutMs
      throw Object.assign(new Error(fate), { fault: 'no_ack' })
    },
    settle: ({ name }, { fault }) => {
      demand(taken.has(name) && !settled.has(name), `${name} was settled twice`)
      settled.set(name, fault)
      if (fault === null) demand(holdersOf(name) === 1, `${name} was settled as stored and is not`)
      note(fault === null ? 'settled as stored' : 'settled as unknown')
      if (fault !== null && holdersOf(name) > 0) note('stored but settled as unknown')
    },
    onSettleFailed: (_waiter, error) => {
      throw error
    },
    onSettled: () => undefined,
    defer: (run) => void turn('end of turn').then(run),
    later: (run, ms) => {
      note('lingered')
      void turn('later').then(() => {
        nowMs += ms
        run()
      })
    },
    pause: async (ms) => {
      nowMs += ms
      await turn('pause')
    },
    newBatchId: () => `batch-${++ids}`,
    nowMs: () => nowMs,
    limits,
    observe: { stored: () => undefined, retried: () => undefined, failed: () => undefined },
  })
  return {
    offer: (size: number) => {
      const name = `e${taken.size}-${ids}-${settled.size}`
      const [head, body] = [`{"name":"${name}","body":`, Buffer.from(`"${'x'.repeat(size)}"`)]
      const bytes = toWaiterBytes(head, body)
      taken.add(name)
      const before = commit.waiting()
      if (commit.offer({ name, head, body, bytes, arrivedMs: nowMs })) {
        const { events, bytes: waitingBytes } = commit.waiting()
        demand(events <= limits.waitingEventsMax, `${events} events wait`)
        demand(waitingBytes < limits.waitingBytesMax + bytes, `${waitingBytes} bytes wait`)
        return
      }
      taken.delete(name)
      const isFull =
        before.events >= limits.waitingEventsMax || before.bytes >= limits.waitingBytesMax
      demand(isFull, `${name} was refused while there was room`)
      note('refused: limit')
    },
    pass: (ms: number) => {
      nowMs += ms
    },
    finish: async () => {
      await scheduler.waitFor(commit.drained())
      await scheduler.waitAll()
      demand(changed.length === 0, `${changed.join()} were sent again with other bytes`)
      demand(settled.size === taken.size, `${taken.size - settled.size} events were never settled`)
      for (const name of taken) demand(holdersOf(name) <= 1, `${name} is stored under two ids`)
      const { events, bytes } = commit.waiting()
      demand(events === 0 && bytes === 0, 'events still wait')
      demand(mostInFlight <= limits.publishesInFlightMax, `${mostInFlight} publishes at a time`)
      const messages = [...sent.values()].map(namesIn)
      const places = messages.flat().map((name) => [...taken].indexOf(name))
      const isOrdered = places.every((place, at) => place > (places[at - 1] ?? -1))
      demand(isOrdered, `sent in the order ${places.join()}`)
      for (const [at, message] of [...sent.values()].entries()) {
        const count = messages[at]!.length
        demand(count <= limits.batchEventsMax, `${count} events in a message`)
        const fits = Buffer.byteLength(message) <= limits.batchBytesMax || count === 1
        demand(fits, `a message of ${Buffer.byteLength(message)} bytes`)
      }
    },
  }
}

type History = ReturnType<typeof createHistory>

const offer = (size: number) =>
  toCommand<History>(`offer(${size})`, (history) => history.offer(size))
const pass = (ms: number) => toCommand<History>(`pass(${ms})`, (history) => history.pass(ms))

const sizes = fc.integer({ min: 0, max: 300 })
const commands = anyCommands<History>(
  [sizes.map(offer), sizes.map(offer), fc.integer({ min: 1, max: 900 }).map(pass)],
  50,
)
const fates = fc.infiniteStream(
  fc.constantFrom<Fate>('stored', 'stored', 'ack lost', 'late', 'lost', 'refused'),
)

export function runGroupCommit(options: MachineOptions): Promise<MachineReport> {
  return runMachine(
    options,
    fc.tuple(fc.scheduler(), commands, fates),
    async (note, [scheduler, steps, fate]) => {
      const history = createHistory(scheduler, () => fate.next().value as Fate, note)
      await raceCommands(scheduler, history, steps)
      await history.finish()
    },
  )
}
