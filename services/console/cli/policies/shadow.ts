/** `di policy shadow`: sets a shadow policy and compares its decisions with the active policy's. */
import { actions } from '#shared/core/scoring/score.ts'
import { type Answer, command, toQuery } from '../commands.ts'
import { type CliContext, CliError, toTenantPath } from '../context.ts'
import { toComparedOutcomes } from '../outcomes/counts-text.ts'
import { toFields, toTable, toTime } from '../tables.ts'
import { toChanges } from './backtest.ts'
import { readPolicyFile } from './policy-file.ts'
import { toPolicyText } from './policy-text.ts'

const path = '/tenants/{tenant_id}/policy/shadow'

const pathOf = (slug: string) => `${toTenantPath(slug)}/policy/shadow`
type Shown = Answer<typeof path>
type ShadowResult = Answer<typeof path, 'put'>
type ShadowComparisonBody = Answer<`${typeof path}/comparison`>

type Options = {
  preset?: string
  show?: true
  off?: true
  compare?: true
  since?: string
  version?: string
}

export const shadow = command<Options>(
  'shadow <slug> [file]',
  'set a policy that decides beside the active one and raises no alerts (- is stdin)',
  [
    ['--preset <name>', 'a preset instead of a file: see `policy presets`'],
    ['--show', 'show the shadow policy'],
    ['--off', 'switch it off; its decisions stay'],
    ['--compare', 'compare its decisions with those of the active policy'],
    ['--since <time>', 'with --compare, only events received at this time or later'],
    ['--version <n>', 'with --compare, an older version of the shadow'],
  ],
  async (context, [slug, file], options) => {
    requireOne(file, options)
    if (options.show) return showShadow(context, slug!)
    if (options.off) return switchOff(context, slug!)
    if (options.compare) return compareShadow(context, slug!, options)
    const { preset } = options
    const body = file === undefined ? { preset } : await readPolicyFile(context, file)
    const answer = await context.adminFetch('PUT', pathOf(slug!), body)
    context.out(answer as ShadowResult, toSetText)
  },
)

function requireOne(file: string | undefined, options: Options): void {
  const { preset, show, off, compare, since, version } = options
  const given = [file, preset, show, off, compare].filter((one) => one !== undefined)
  if (given.length !== 1) {
    throw new CliError('Give one of FILE, --preset NAME, --show, --off and --compare.')
  }
  if (!compare && (since !== undefined || version !== undefined)) {
    throw new CliError('--since and --version go with --compare.')
  }
}

async function showShadow(context: CliContext, slug: string): Promise<void> {
  const shadow = (await context.adminFetch('GET', pathOf(slug))) as Shown
  context.out(shadow, (one) => {
    const head = toFields({
      tenant_id: one.tenant_id,
      shadow: one.name,
      version: `${one.version} (${one.policy_hash?.slice(0, 8)})`,
      set: `${toTime(one.created_at)} by ${one.created_by}`,
      decides: `events received from ${toTime(one.effective_at)} on`,
    })
    return `${head}\n\n${toPolicyText(one.document, Date.now())}`
  })
}

async function switchOff(context: CliContext, slug: string): Promise<void> {
  const answer = (await context.adminFetch('DELETE', pathOf(slug))) as ShadowResult
  context.out(answer, toSetText)
}

function toSetText(answer: ShadowResult): string {
  const { version, previous_version: previous, name, effective_at: from } = answer
  const what = answer.policy_hash === null ? 'off' : `version ${version} (${name})`
  if (version === previous) return `The shadow was ${what} already, from ${toTime(from)} on.`
  const rest = answer.policy_hash === null ? '' : ' It raises no alerts.'
  return `The shadow is ${what} for events received from ${toTime(from)} on.${rest}`
}

async function compareShadow(
  context: CliContext,
  slug: string,
  { since, version }: Options,
): Promise<void> {
  const compared = `${pathOf(slug)}/comparison${toQuery({ since, version })}`
  const report = await context.adminFetch('GET', compared)
  context.out(report as ShadowComparisonBody, toComparisonText)
}

function toComparisonText(report: ShadowComparisonBody): string {
  const { shadow, events, sessions, alerts } = report
  const versions = shadow.versions.length === 0 ? shadow.version : shadow.versions.join(', ')
  const head = toFields({
    tenant_id: report.tenant_id,
    shadow: `${shadow.name ?? '-'}, version ${versions} (${shadow.policy_hash.slice(0, 8)})`,
    events: `${events} in ${sessions} sessions`,
    received: `${toTime(report.first_event_at)} to ${toTime(report.last_event_at)}`,
    alerts: `${alerts.active}, by the shadow ${alerts.shadow}`,
  })
  if (events === 0) return `${head}\n\nIt has decided nothing yet.`
  return [head, ...toParts(report)].join('\n\n')
}

function toParts(report: ShadowComparisonBody): string[] {
  const parts = [
    toTable(
      ['EVENTS', ...actions.map((action) => `SHADOW ${action}`)],
      actions.map((from) => [from, ...actions.map((to) => String(report.matrix[from]?.[to] ?? 0))]),
    ),
    toTable(
      ['ALERTS', 'ACTIVE', 'SHADOW'],
      Object.entries(report.by_action).map(([name, { active, shadow }]) => [
        name,
        ...[active, shadow].map(String),
      ]),
    ),
    toComparedOutcomes(
      {
        before: report.outcomes.active,
        after: report.outcomes.shadow,
        heads: ['ACTIVE', 'SHADOW'],
      },
      report.outcomes,
    ),
    toChanges('SESSIONS', [{ name: 'all', ...report.changes }]),
    toChanges('PLATFORM', report.by_platform),
    toChanges('SDK VERSION', report.by_sdk_version),
  ]
  const { by_flag: flags, by_disposition: judged, moved_most: moved } = report
  if (flags.length > 0) parts.push(toChanges('FLAG', flags))
  if (judged.length > 0) {
    const rows = judged.map((one) => [one.name, String(one.kept), String(one.lost)])
    parts.push(toTable(['DISPOSITION', 'KEPT', 'LOST'], rows))
  }
  if (moved.length > 0) {
    const rows = moved.map((one) => [
      one.device_id,
      one.session_id,
      ...[one.active_score, one.shadow_score].map(String),
    ])
    parts.push(toTable(['DEVICE', 'SESSION', 'SCORE', 'SHADOW'], rows))
  }
  return parts
}
