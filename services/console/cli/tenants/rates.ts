/** `di tenants rates`: a tenant's limits for telemetry and for the API. */
import { InvalidArgumentError, Option } from 'commander'
import { restBurst, restRatePerSecond } from '#shared/core/base/limits/rest-api.ts'
import { undecidedShare, undecidedShareMax } from '#shared/core/base/limits/stream.ts'
import { type Answer, command } from '../commands.ts'
import { toTenantPath } from '../context.ts'
import { toFields } from '../tables.ts'

type Rate = { per_second: number; burst: number }
/** As given: commander turns null into text. */
type Options = {
  ingest?: Rate | 'default'
  ingestBytes?: Rate | 'default'
  ingestShare?: number | 'default'
  rest?: Rate | 'default'
}
type Rates = Pick<
  Answer<'/tenants/{tenant_id}'>,
  'tenant_id' | 'ingest_rate' | 'ingest_bytes' | 'ingest_share' | 'rest_rate'
>

const rate = 'PER_SECOND, PER_SECOND/BURST or `default`'
const share = `up to ${undecidedShareMax}, or \`default\``
const rateOption = (flags: string, description: string) =>
  new Option(flags, `${description}: ${rate}`).argParser(toRate)

/** Of the group `tenants`. */
export const rates = command<Options>(
  'rates <slug>',
  'show or set the rates of a tenant; requests above a rate get 429',
  [
    rateOption('--ingest <rate>', 'submissions at each edge'),
    rateOption('--ingest-bytes <rate>', 'bytes of submissions at each edge'),
    new Option(
      '--ingest-share <share>',
      `share of the stream for undecided events: ${share}`,
    ).argParser(toShare),
    rateOption('--rest <rate>', 'REST calls at each api process'),
  ],
  async (context, [slug], { ingest, ingestBytes, ingestShare, rest }) => {
    const path = toTenantPath(slug!)
    const given = {
      ingest_rate: toSetting(ingest),
      ingest_bytes: toSetting(ingestBytes),
      ingest_share: toSetting(ingestShare),
      rest_rate: toSetting(rest),
    }
    const isRead = Object.values(given).every((one) => one === undefined)
    const tenant = (
      isRead
        ? await context.adminFetch('GET', path)
        : await context.adminFetch('PUT', `${path}/rates`, given)
    ) as Rates
    const { tenant_id, ingest_rate, ingest_bytes, ingest_share, rest_rate } = tenant
    const shown: Rates = { tenant_id, ingest_rate, ingest_bytes, ingest_share, rest_rate }
    context.out(shown, toText)
  },
)

/** Null is the product's default; a rate that is not given does not change. */
function toSetting<T>(given: T | 'default' | undefined): T | null | undefined {
  return given === 'default' ? null : given
}

function toRate(text: string): Rate | 'default' {
  if (text === 'default') return text
  const match = /^(\d+(?:\.\d+)?)(?:\/(\d+(?:\.\d+)?))?$/.exec(text)
  if (match === null) {
    throw new InvalidArgumentError('It must be PER_SECOND, PER_SECOND/BURST or default.')
  }
  const perSecond = Number(match[1])
  // Without a burst: two seconds of the rate, as by default.
  return { per_second: perSecond, burst: match[2] === undefined ? 2 * perSecond : Number(match[2]) }
}

function toShare(text: string): number | 'default' {
  if (text === 'default') return text
  const share = Number(text)
  if (share > 0 && share <= undecidedShareMax) return share
  throw new InvalidArgumentError(`It must be above 0 and up to ${undecidedShareMax}, or default.`)
}

function toText({ tenant_id, ingest_rate, ingest_bytes, ingest_share, rest_rate }: Rates): string {
  const rest = { per_second: restRatePerSecond, burst: restBurst }
  return toFields({
    tenant_id,
    ingest: ingest_rate === null ? 'without limit (the default)' : toRateText(ingest_rate, null),
    ingest_bytes:
      ingest_bytes === null ? 'what others leave (the default)' : toRateText(ingest_bytes, null),
    ingest_share: ingest_share ?? `${undecidedShare} (the default)`,
    rest: toRateText(rest_rate, rest),
  })
}

function toRateText(rate: Rate | null, byDefault: Rate | null): string {
  const { per_second, burst } = (rate ?? byDefault)!
  return `${per_second}/s, bursts of ${burst}${rate === null ? ' (the default)' : ''}`
}
