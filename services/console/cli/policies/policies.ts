/** `di policy ...`: show and set a tenant's policy; list versions and presets. */
import { type Command, InvalidArgumentError } from 'commander'
import type { PolicyVersion } from '#shared/io/policies/policy-store.ts'
import type { PolicyResult } from '../../policies/manage-policies.ts'
import { type CliContext, CliError, toTenantPath } from '../context.ts'
import { toLimit } from '../deliveries.ts'
import { toFields, toTable, toTime } from '../tables.ts'
import { addBacktest } from './backtest.ts'
import { readPolicyFile } from './policy-file.ts'
import { toPolicyDiff, toPolicyText } from './policy-text.ts'
import { addShadow } from './shadow.ts'

type ShownPolicy = PolicyVersion & { tenant_id: string; in_force: boolean; document: object }
type VersionPage = { data: (PolicyVersion & { in_force: boolean })[]; next_cursor: string | null }
type Preset = { name: string; policy_hash: string; document: object }

const pathOf = (slug: string) => `${toTenantPath(slug)}/policy`
const versionPathOf = (slug: string, version: number) => `${pathOf(slug)}/versions/${version}`

/** Adds the group `policy`. */
export function registerPolicies(program: Command, context: CliContext): void {
  const policy = program.command('policy').description('show and set policies')
  addReads(policy, context)
  addSet(policy, context)
  addShadow(policy, context)
  addPresets(policy, context)
  addBacktest(policy, context)
}

function addReads(policy: Command, context: CliContext): void {
  policy
    .command('show <slug>')
    .description('the policy in force; what --json prints can be edited and set')
    .option('--version <n>', 'an older version', toVersion)
    .option('--json', 'print one JSON document')
    .action(async (slug: string, options: { version?: number }) => {
      const path =
        options.version === undefined ? pathOf(slug) : versionPathOf(slug, options.version)
      const shown = (await context.adminFetch('GET', path)) as ShownPolicy
      context.out(toPrinted(shown), () => toShownText(shown))
    })
  policy
    .command('versions <slug>')
    .description('all versions, newest first')
    .option('--limit <n>', 'at most this many', toLimit, 100)
    .option('--json', 'print one JSON document')
    .action(async (slug: string, options: { limit: number }) => {
      const path = `${pathOf(slug)}/versions?limit=${options.limit}`
      context.out((await context.adminFetch('GET', path)) as VersionPage, toVersionTable)
    })
}

function toVersion(text: string): number {
  const version = Number(text)
  if (Number.isInteger(version) && version >= 1) return version
  throw new InvalidArgumentError('must be a whole number from 1')
}

/**
 * A policy in JSON output: its metadata and its document. The name is that of the document. The
 * order of fields is kept, since the hash covers it.
 */
function toPrinted({ document, name: _, ...metadata }: ShownPolicy | Preset): object {
  return { ...metadata, ...document }
}

function toShownText(policy: ShownPolicy): string {
  const head = toFields({
    tenant_id: policy.tenant_id,
    policy: policy.name,
    version: `${policy.version} (${policy.policy_hash.slice(0, 8)})${
      policy.in_force ? ', in force' : ', not in force'
    }`,
    set: `${toTime(policy.created_at)} by ${policy.created_by}`,
  })
  return `${head}\n\n${toPolicyText(policy.document, Date.now())}`
}

function toVersionTable({ data }: VersionPage): string {
  return toTable(
    ['VERSION', 'NAME', 'HASH', 'SET', 'BY', ''],
    data.map((version) => [
      String(version.version),
      version.name,
      version.policy_hash.slice(0, 8),
      toTime(version.created_at),
      version.created_by,
      version.in_force ? 'in force' : '',
    ]),
  )
}

type SetOptions = { preset?: string; ifVersion?: number }

function addSet(policy: Command, context: CliContext): void {
  policy
    .command('set <slug> [file]')
    .description('set the policy from a file (- is stdin); returns once every edge scores by it')
    .option('--preset <name>', 'a preset instead of a file: see `policy presets`')
    .option('--if-version <n>', 'only while this version is in force', toVersion)
    .option('--json', 'print one JSON document')
    .action(async (slug: string, file: string | undefined, options: SetOptions) => {
      if ((file === undefined) === (options.preset === undefined)) {
        throw new CliError('Give one of FILE and --preset NAME.')
      }
      const body =
        file === undefined ? { preset: options.preset } : await readPolicyFile(context, file)
      const query = options.ifVersion === undefined ? '' : `?if_version=${options.ifVersion}`
      const path = `${pathOf(slug)}${query}`
      const answer = (await context.adminFetch('PUT', path, body)) as PolicyResult
      const shown = await findVersion(context, slug, answer.version)
      const diff = context.json ? '' : await findDiff(context, answer, shown)
      context.out(toPrinted({ ...answer, ...shown }), () => toSetText(answer, diff))
    })
}

async function findVersion(
  context: CliContext,
  slug: string,
  version: number,
): Promise<ShownPolicy> {
  return (await context.adminFetch('GET', versionPathOf(slug, version))) as ShownPolicy
}

async function findDiff(
  context: CliContext,
  { tenant_id: slug, version, previous_version: previous }: PolicyResult,
  shown: ShownPolicy,
): Promise<string> {
  if (version === previous) return ''
  const before = await findVersion(context, slug, previous)
  return toPolicyDiff(before.document, shown.document)
}

function toSetText(answer: PolicyResult, diff: string): string {
  const { version, previous_version: previous, lease_expired_edges: silent } = answer
  const what =
    version === previous
      ? `Version ${version} (${answer.name}) was in force already.`
      : `Version ${version} (${answer.name}) is in force, after version ${previous}.`
  const refusing =
    silent.length === 0
      ? ''
      : `; ${silent.length} did not answer and reject requests until they have it`
  const edges = `${answer.confirmed_edges.length} edges confirmed in ${answer.duration_ms} ms`
  return [`${what} ${edges}${refusing}.`, ...(diff === '' ? [] : [diff])].join('\n\n')
}

function addPresets(policy: Command, context: CliContext): void {
  policy
    .command('presets [name]')
    .description('the presets, or one of them in full')
    .option('--json', 'print one JSON document')
    .action(async (name: string | undefined) => {
      if (name === undefined) {
        const presets = await context.adminFetch('GET', '/policy-presets')
        context.out(presets as { data: Omit<Preset, 'document'>[] }, ({ data }) =>
          toTable(
            ['PRESET', 'HASH'],
            data.map((preset) => [preset.name, preset.policy_hash.slice(0, 8)]),
          ),
        )
        return
      }
      const path = `/policy-presets/${encodeURIComponent(name)}`
      const preset = (await context.adminFetch('GET', path)) as Preset
      context.out(toPrinted(preset), () => toPolicyText(preset.document, Date.now()))
    })
  policy
    .command('schema')
    .description('the JSON Schema of a policy document')
    .option('--json', 'print one JSON document')
    .action(async () => {
      const schema = await context.adminFetch('GET', '/policy.schema.json')
      context.out(schema, (value) => JSON.stringify(value, null, 2))
    })
}
