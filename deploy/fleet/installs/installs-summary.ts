/** The summary of a run with installs, as a JSON document and as text. */
import type { FleetTenant } from '../fleet-tenant.ts'
import type { Mismatch, SentEvents } from '../send/sent-events.ts'
import type { Attack } from './attacks.ts'
import type { InstallPhone } from './cast.ts'
import type { CheckedSignals } from './check-signals.ts'
import type { Registered } from './exchange.ts'

export type InstallsSummary = {
  tenant_id: string
  public_api_key: string | null
  seed: number
  interrupted: boolean
  /** Phones by kind. */
  phones: Record<string, number>
  /** Registrations by verdict. */
  registered: Record<string, number>
  /** Events that installs signed, and that the tenant's secret signed for made-up devices. */
  events: { by_installs: number; by_the_secret: number }
  attacks: Attack[]
  /** How many events have each server signal; null where they were not compared. */
  signals: CheckedSignals | null
  notes: string[]
  mismatches_total: number
  mismatches_by_kind: Record<string, number>
  mismatches: Mismatch[]
  ok: boolean
  console_url: string
}

type Ended = {
  tenant: FleetTenant
  seed: number
  cast: readonly InstallPhone[]
  registered: readonly Registered[]
  attacks: Attack[]
  madeUp: number
  checked: CheckedSignals | null
  notes: string[]
  mismatches: SentEvents['mismatches']
  interrupted: boolean
  consoleUrl: string
}

export function summarizeInstalls(ended: Ended): InstallsSummary {
  const { tenant, seed, cast, registered, attacks, madeUp, checked, notes, mismatches } = ended
  return {
    tenant_id: tenant.tenantId,
    public_api_key: tenant.apiKey,
    seed,
    interrupted: ended.interrupted,
    phones: countBy(cast.map(({ kind }) => kind.name)),
    registered: countBy(registered.map(({ install }) => install.attestation.verdict)),
    events: {
      by_installs: registered.reduce((sum, { events }) => sum + events.length, 0),
      by_the_secret: madeUp,
    },
    attacks,
    signals: checked,
    notes,
    mismatches_total: mismatches.total,
    mismatches_by_kind: mismatches.byWhat,
    mismatches: mismatches.kept,
    ok: mismatches.total === 0 && !ended.interrupted,
    console_url: `${ended.consoleUrl}/t/${tenant.tenantId}/overview`,
  }
}

function countBy(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1
  return counts
}

const toCounts = (counts: Record<string, number>): string =>
  Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ') || 'none'

/** The summary as a person reads it. */
export function toInstallsText(summary: InstallsSummary): string {
  const { attacks, signals, events, mismatches_by_kind: byKind } = summary
  const tried = attacks.map(({ what, refused }) => `${what.replaceAll('_', ' ')} ${refused}`)
  return [
    `tenant      ${summary.tenant_id} (seed ${summary.seed})`,
    `phones      ${toCounts(summary.phones)}`,
    `registered  ${toCounts(summary.registered)}`,
    `events      ${events.by_installs} by installs, ${events.by_the_secret} by the secret`,
    `refused     ${tried.join(', ') || 'nothing was tried'}`,
    `signals     ${signals === null ? 'not compared' : toCounts(signals.counts)}`,
    `console     ${summary.console_url}`,
    ...summary.notes,
    ...(summary.ok
      ? ['The service said of every phone what it is.']
      : [
          `${summary.mismatches_total} mismatches: ${toCounts(byKind)}`,
          ...summary.mismatches.map((one) => `  ${JSON.stringify(one).slice(0, 600)}`),
        ]),
  ].join('\n')
}
