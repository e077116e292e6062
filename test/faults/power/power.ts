/**
 * `npm run faults -- power [--requests 10000] [--cuts 10] [--seed S]`: an event with a 200 survives
 * a power cut. By the order of system calls: each 200 is written after the sync of its event has
 * returned. By a cut: nats-server is killed under load, its store is reduced to the synced content,
 * and every accepted event must be in it. A control with a sync every two minutes must lose events.
 * Needs strace.
 */
import { createRandom } from '../../../deploy/fleet/phones/random.ts'
import { print, randomSeed, readOptions, reportBroken } from '../support/drill.ts'
import { type CutRun, type OrderRun, runCut, runOrder } from './run-power.ts'

const controlRequests = 500

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const { requests, cuts, seed } = readOptions(args, {
    requests: 10_000,
    cuts: 10,
    seed: randomSeed(),
  })
  print(`${requests} requests, ${cuts} cuts, --seed ${seed}`)
  const chance = createRandom(seed, 'power')
  const broken: string[] = []
  const order = await runOrder({ syncAlways: true, requests })
  reportOrder('synced before each acknowledgement', order)
  broken.push(...judgeSynced(order))
  let accepted = 0
  for (let cut = 1; cut <= cuts; cut++) {
    const one = await runCut({ syncAlways: true, afterMs: chance.int(200, 2_000) })
    reportCut(`cut ${cut}`, one)
    accepted += one.accepted
    if (one.lost.length > 0) broken.push(`cut ${cut} lost ${one.lost.length} accepted events`)
    if (one.accepted === 0) broken.push(`cut ${cut}: nothing was accepted`)
  }
  print(`accepted before a cut, in all: ${accepted}`)
  const lazyOrder = await runOrder({ syncAlways: false, requests: controlRequests })
  reportOrder('control: synced every two minutes', lazyOrder)
  if (lazyOrder.early.length === 0) broken.push('control: no answer before its sync was seen')
  const lazyCut = await runCut({ syncAlways: false, afterMs: chance.int(200, 2_000) })
  reportCut('control: cut', lazyCut)
  if (lazyCut.lost.length === 0) broken.push('control: no loss was seen')
  reportBroken(broken, 'every promise held, and the control broke them')
}

/** @returns the broken guarantees about the order of calls */
export function judgeSynced(order: OrderRun): string[] {
  const { accepted, answers, unexplained, early, requests } = order
  const promises: [boolean, string][] = [
    [early.length > 0, `answered before the sync: ${early.length}, such as ${early[0]}`],
    [unexplained.length > 0, `answers of events that were not written: ${unexplained.length}`],
    [answers !== accepted, `${answers} answers of 200 were traced, ${accepted} arrived`],
    [accepted < requests, `only ${accepted} of ${requests} were accepted`],
  ]
  return promises.filter(([isBroken]) => isBroken).map(([, line]) => line)
}

function reportOrder(what: string, order: OrderRun): void {
  const { answers, syncs, interleaved, early, unexplained, closestMs } = order
  print(`${what}: ${answers} answers of 200 over ${syncs} syncs`)
  print(`  (${interleaved} with other calls between their beginning and end)`)
  print(`  answered before the sync had ended: ${early.length}, not written: ${unexplained.length}`)
  if (!Number.isFinite(closestMs)) return
  print(`  closest: ${closestMs.toFixed(3)} ms from the end of a sync to its 200`)
}

function reportCut(what: string, cut: CutRun): void {
  print(`${what}: ${cut.accepted} accepted, ${cut.lost.length} of them lost, ${cut.left} left`)
  const off = `${cut.lostFiles} files, ${cut.lostBytes} bytes`
  print(`  ${cut.syncs} syncs; ${cut.files} files left; cut off: ${off}`)
}
