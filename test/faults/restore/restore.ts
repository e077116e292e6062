/**
 * `npm run faults -- restore [--minutes 5] [--rate 100] [--only NAME] [--seed S]`: a whole stack is
 * restored from a backup that was made under load (`all`), and Postgres (`postgres`), ClickHouse
 * (`clickhouse`) or JetStream (`jetstream`) is put back by some minutes while the others are newer.
 * Exits with 1 when anything that was accepted is missing at the end, stages differ, or a rotation,
 * an erasure or a new tenant since then is undone.
 */
import { print, randomSeed, readOptions, reportBroken } from '../support/drill.ts'
import {
  backupAndRestore,
  judgeRestore,
  putBack,
  type RestoreOptions,
  type RestoreResult,
} from './run-restore.ts'

const kinds: Record<string, (options: RestoreOptions) => Promise<RestoreResult>> = {
  all: backupAndRestore,
  postgres: (options) => putBack('postgres', options),
  clickhouse: (options) => putBack('clickhouse', options),
  jetstream: (options) => putBack('jetstream', options),
}

/** Runs the drill and prints its report. */
export async function run(args: string[]): Promise<void> {
  const options = readOptions(args, { minutes: 5, rate: 100, only: '', seed: randomSeed() })
  print(`${options.minutes} minutes, ${options.rate} events/s, --seed ${options.seed}`)
  const broken: string[] = []
  for (const [name, runKind] of Object.entries(kinds)) {
    if (options.only !== '' && options.only !== name) continue
    print(`${name}:`)
    const result = await runKind({
      seconds: 60 * options.minutes,
      ratePerSecond: options.rate,
      seed: options.seed,
      onStep: (line) => print(`  ${line}`),
    })
    const wrong = judgeRestore(name, result)
    print(`  ${result.accepted} events accepted, ${result.alerts} alerts`)
    for (const line of wrong) print(`  BROKEN: ${line}`)
    broken.push(...wrong)
  }
  reportBroken(broken)
}
