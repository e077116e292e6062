/**
 * `di fleet`: a simulated fleet of phones against the running stack. It sends at the given rate,
 * can receive the webhooks, and compares what it sent with the API at the end. The exit status is 0
 * when everything agrees. With `--history` it makes days of the past instead, and with `--installs`
 * phones that attest their keys.
 */
import { randomBytes, randomInt } from 'node:crypto'
import { type Command, InvalidArgumentError } from 'commander'
import type { FleetContext } from '../../../deploy/fleet/fleet-context.ts'
import type { FleetOptions } from '../../../deploy/fleet/fleet-run.ts'
import type { HistorySummary } from '../../../deploy/fleet/history/run-history.ts'
import { type CliContext, CliError } from './context.ts'
import { toFields } from './tables.ts'

/** Bounds that keep a typing error from filling the machine: 5 million requests are 10 GB. */
const devicesMax = 1_000_000
const rateMax = 20_000
const durationSecondsMax = 86_400
const requestsMax = 5_000_000

/** The terminal sends Ctrl-C to npm and to us, and npm passes it on: one key press, two signals. */
const secondInterruptMs = 1_000

/** Events are kept for 400 days by default. */
const historyDaysMax = 365

type RawOptions = {
  history?: number
  installs?: boolean
  tenant?: string
  hmacSecretFile?: string
  apiKeyFile?: string
  webhookSecretFile?: string
  ingestUrl?: string
  apiUrl?: string
  devices: number
  rate: number
  duration: number
  seed?: number
  receive?: boolean
  receiveFaults: number
  settle: number
}

/** Adds the command `fleet`. */
export function registerFleet(program: Command, context: CliContext): void {
  program
    .command('fleet')
    .description(
      'run a simulated fleet of phones against the stack and check where everything went',
    )
    .option(
      '--history <days>',
      'make this many days of the past in a new tenant of the local stack, and end',
      numberFrom(1, historyDaysMax, true),
    )
    .option(
      '--installs',
      'register phones with keystores of their own in a new tenant, attack them, and check',
    )
    .option('--tenant <slug>', 'report to this tenant instead of a fresh one')
    .option('--hmac-secret-file <file>', "the given tenant's HMAC secret")
    .option('--api-key-file <file>', "the given tenant's API key; without it nothing is read back")
    .option('--webhook-secret-file <file>', "the given tenant's webhook secret, for --receive")
    .option('--ingest-url <url>', 'where ingest listens (default: the local stack)')
    .option('--api-url <url>', 'where the API listens (default: the local stack)')
    .option('--devices <n>', 'phones in the fleet', numberFrom(1, devicesMax, true), 500)
    .option('--rate <r>', 'requests per second', numberFrom(0.1, rateMax), 100)
    .option('--duration <s>', 'seconds to send for', numberFrom(0.1, durationSecondsMax), 30)
    .option('--seed <k>', 'the same seed is the same fleet', numberFrom(0, 2 ** 31, true))
    .option('--receive', 'receive the webhooks and check every one of them')
    .option('--receive-faults <p>', 'share of webhooks answered 500', numberFrom(0, 1), 0)
    .option('--settle <s>', 'seconds to wait for what is late', numberFrom(0, 3_600), 30)
    .action((raw: RawOptions, command: Command) => {
      if (raw.installs === true) return runWithInstalls(context, raw, command)
      return raw.history === undefined ? run(context, raw) : runPast(context, raw, command)
    })
}

function numberFrom(low: number, high: number, whole = false): (text: string) => number {
  return (text) => {
    const value = Number(text)
    const fits = text.trim() !== '' && value >= low && value <= high
    if (fits && (!whole || Number.isInteger(value))) return value
    throw new InvalidArgumentError(
      `must be ${whole ? 'a whole number' : 'a number'} ${low}..${high}`,
    )
  }
}

async function run(context: CliContext, raw: RawOptions): Promise<void> {
  const options = toFleetOptions(raw)
  const { runFleet, toSummaryText, FleetError } = await loadFleet()
  const interrupt = listenForInterrupt()
  try {
    const summary = await runFleet(
      {
        context: toFleetContext(context, FleetError),
        screen: {
          write: (text) => process.stderr.write(text),
          isTerminal: process.stderr.isTTY === true,
          columns: process.stderr.columns ?? 100,
        },
        nowMs: () => Date.now(),
        monotonicMs: () => performance.now(),
        stop: interrupt.signal,
        newSuffix: () => randomBytes(5).toString('hex'),
      },
      options,
    )
    const apiUrl = options.apiUrl ?? context.env.API_URL ?? context.findStack()?.api ?? null
    context.out(summary, (one) => toSummaryText(one, apiUrl))
    if (!summary.ok) process.exitCode = 1
  } catch (error) {
    throw error instanceof FleetError ? new CliError(error.message, { cause: error }) : error
  } finally {
    interrupt.done()
  }
}

/** What `--history` and `--installs` can be given with. */
const optionsBeside = {
  history: ['tenant', 'devices', 'seed'],
  installs: ['devices', 'seed', 'settle'],
} as const

function checkOptionsBeside(option: keyof typeof optionsBeside, command: Command): void {
  const given = command.options
    .map((one) => one.attributeName())
    .filter((name) => command.getOptionValueSource(name) === 'cli')
  const allowed: readonly string[] = [option, ...optionsBeside[option]]
  const other = given.find((name) => !allowed.includes(name))
  if (other !== undefined) throw new CliError(`--${option} cannot be given with ${other}`)
}

async function runWithInstalls(
  context: CliContext,
  raw: RawOptions,
  command: Command,
): Promise<void> {
  checkOptionsBeside('installs', command)
  const { runInstalls, toInstallsText, FleetError } = await loadFleet()
  const interrupt = listenForInterrupt()
  try {
    const summary = await runInstalls(
      {
        context: toFleetContext(context, FleetError),
        nowMs: () => Date.now(),
        stop: interrupt.signal,
        newSuffix: () => randomBytes(5).toString('hex'),
        onProgress: (text) => process.stderr.write(`${text}\n`),
      },
      {
        devices: raw.devices,
        seed: raw.seed ?? randomInt(1, 2 ** 31),
        settleMs: raw.settle * 1000,
      },
    )
    context.out(summary, toInstallsText)
    if (!summary.ok) process.exitCode = 1
  } catch (error) {
    throw error instanceof FleetError ? new CliError(error.message, { cause: error }) : error
  } finally {
    interrupt.done()
  }
}

async function runPast(context: CliContext, raw: RawOptions, command: Command): Promise<void> {
  checkOptionsBeside('history', command)
  const { runHistory, FleetError } = await loadFleet()
  const { stderr } = process
  const interrupt = listenForInterrupt()
  const endLine = () => stderr.isTTY && stderr.write('\n')
  try {
    const summary = await runHistory(
      {
        context: toFleetContext(context, FleetError),
        nowMs: () => Date.now(),
        stop: interrupt.signal,
        onProgress: createProgress(stderr, context.json),
      },
      {
        days: raw.history!,
        devices: raw.devices,
        seed: raw.seed ?? randomInt(1, 2 ** 31),
        tenant: raw.tenant ?? `history-${randomBytes(5).toString('hex')}`,
      },
    )
    endLine()
    context.out(summary, toHistoryText)
  } catch (error) {
    endLine()
    throw error instanceof FleetError ? new CliError(error.message, { cause: error }) : error
  } finally {
    interrupt.done()
  }
}

/** On a terminal one line that changes; elsewhere a line for each tenth, and none for programs. */
function createProgress(stderr: NodeJS.WriteStream, isForPrograms: boolean) {
  let tenths = -1
  return (events: number, all: number): void => {
    const text = `decided ${events} of ${all} events`
    if (stderr.isTTY) stderr.write(`\r${text}`)
    const now = Math.floor((10 * events) / Math.max(1, all))
    if (stderr.isTTY || isForPrograms || now === tenths) return
    tenths = now
    stderr.write(`${text}\n`)
  }
}

const toHistoryText = ({ deliveries, ...summary }: HistorySummary): string =>
  toFields({ ...summary, ...deliveries })

/** Loads the fleet when the command runs: the production image leaves it out. */
async function loadFleet() {
  try {
    const [run, history, installs, text, summary, context] = await Promise.all([
      import('../../../deploy/fleet/run-fleet.ts'),
      import('../../../deploy/fleet/history/run-history.ts'),
      import('../../../deploy/fleet/installs/run-installs.ts'),
      import('../../../deploy/fleet/installs/installs-summary.ts'),
      import('../../../deploy/fleet/check/summary.ts'),
      import('../../../deploy/fleet/fleet-context.ts'),
    ])
    return { ...run, ...history, ...installs, ...text, ...summary, ...context }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new CliError(
      'The simulated fleet is not installed here: the production image leaves it out. ' +
        'Run `di fleet` from a checkout of the source.',
      { cause: error },
    )
  }
}

/** The fleet's view of the command line; a refusal of the console is a `FleetError` in it. */
function toFleetContext(
  { env, adminFetch, findStack }: CliContext,
  FleetError: Awaited<ReturnType<typeof loadFleet>>['FleetError'],
): FleetContext {
  return {
    env,
    findStack,
    adminFetch: (method, path, body) =>
      adminFetch(method, path, body).catch((error: unknown) => {
        if (!(error instanceof CliError)) throw error
        throw new FleetError(error.message, { cause: error })
      }),
  }
}

function toFleetOptions(raw: RawOptions): FleetOptions {
  if (raw.rate * raw.duration > requestsMax) {
    throw new CliError(`--rate times --duration must not be above ${requestsMax} requests`)
  }
  if (raw.receiveFaults > 0 && raw.receive !== true) {
    throw new CliError('--receive-faults needs --receive')
  }
  return {
    ...raw,
    ratePerSecond: raw.rate,
    durationMs: raw.duration * 1000,
    // The summary prints the seed, so that the run can be repeated.
    seed: raw.seed ?? randomInt(1, 2 ** 31),
    receive: raw.receive === true,
    settleMs: raw.settle * 1000,
  }
}

/**
 * The first Ctrl-C ends the sending, and what was sent is still checked; of a history it ends the
 * making. Another one ends it all.
 */
function listenForInterrupt(): { signal: AbortSignal; done: () => void } {
  const controller = new AbortController()
  let firstMs = 0
  const onSignal = () => {
    if (!controller.signal.aborted) {
      firstMs = performance.now()
      controller.abort()
    } else if (performance.now() - firstMs > secondInterruptMs) process.exit(130)
  }
  process.on('SIGINT', onSignal)
  process.on('SIGTERM', onSignal)
  return {
    signal: controller.signal,
    done: () => {
      process.off('SIGINT', onSignal)
      process.off('SIGTERM', onSignal)
    },
  }
}
