/** `di policy ...`: show and set a tenant's policy; list versions and presets. */
import { InvalidArgumentError, Option } from 'commander'
import { type Answer, command, group, limit, read, toQuery } from '../commands.ts'
import { type CliContext, CliError, toTenantPath } from '../context.ts'
import { toColumns, toFields, toTime } from '../tables.ts'
import { backtest } from './backtest.ts'
import { drafts } from './drafts.ts'
import { readPolicyFile } from './policy-file.ts'
import { toPolicyDiff, toPolicyText } from './policy-text.ts'
import { shadow } from './shadow.ts'
import { suggest } from './suggest.ts'

const path = '/tenants/{tenant_id}/policy'

type ShownPolicy = Answer<typeof path>
type PolicyResult = Answer<typeof path, 'put'>
type Presets = Answer<'/policy-presets'>
type Preset = Answer<'/policy-presets/{name}'>
type SetOptions = { preset?: string; ifVersion?: number; reason?: string }

const pathOf = (slug: string) => `${toTenantPath(slug)}/policy`
const versionPathOf = (slug: string, version: number) => `${pathOf(slug)}/versions/${version}`

export const policy = group('policy', 'show and set policies', [
  command<{ version?: number }>(
    'show <slug>',
    'the policy in force; what --json prints can be edited and set',
    [new Option('--version <n>', 'an older version').argParser(toVersion)],
    async (context, [slug], { version }) => {
      const shownPath = version === undefined ? pathOf(slug!) : versionPathOf(slug!, version)
      const shown = (await context.adminFetch('GET', shownPath)) as ShownPolicy
      context.out(toPrinted(shown), () => toShownText(shown))
    },
  ),
  read('versions <slug>', 'all versions, newest first', `${path}/versions`, {
    options: [limit(100)],
    columns: [
      ['VERSION', 'version'],
      ['NAME', 'name'],
      ['HASH', ({ policy_hash: hash }) => hash.slice(0, 8)],
      ['SET', 'created_at'],
      ['BY', 'created_by'],
      ['REASON', 'reason'],
      ['', ({ in_force: inForce }) => (inForce ? 'in force' : '')],
    ],
  }),
  command<SetOptions>(
    'set <slug> [file]',
    'set the policy from a file (- is stdin); returns once every edge scores by it',
    [
      ['--preset <name>', 'a preset instead of a file: see `policy presets`'],
      new Option('--if-version <n>', 'only while this version is in force').argParser(toVersion),
      ['--reason <text>', 'why; shown with the version'],
    ],
    (context, [slug, file], options) => setPolicy(context, slug!, file, options),
  ),
  drafts,
  shadow,
  command('presets [name]', 'the presets, or one of them in full', [], showPresets),
  read('schema', 'the JSON Schema of a policy document', '/policy.schema.json', {
    text: (schema) => JSON.stringify(schema, null, 2),
  }),
  backtest,
  suggest,
])

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
  return { ...metadata, ...(document as object) }
}

function toShownText(policy: ShownPolicy): string {
  const head = toFields({
    tenant_id: policy.tenant_id,
    policy: policy.name,
    version: `${policy.version} (${policy.policy_hash.slice(0, 8)})${
      policy.in_force ? ', in force' : ', not in force'
    }`,
    set: `${toTime(policy.created_at)} by ${policy.created_by}`,
    ...(policy.approved_by === null ? {} : { approved_by: policy.approved_by }),
    ...(policy.reason === null ? {} : { reason: policy.reason }),
  })
  return `${head}\n\n${toPolicyText(policy.document, Date.now())}`
}

async function setPolicy(
  context: CliContext,
  slug: string,
  file: string | undefined,
  { preset, ifVersion, reason }: SetOptions,
): Promise<void> {
  if ((file === undefined) === (preset === undefined)) {
    throw new CliError('Give one of FILE and --preset NAME.')
  }
  const body = file === undefined ? { preset } : await readPolicyFile(context, file)
  const query = toQuery({ if_version: ifVersion, reason })
  const answer = await context.adminFetch('PUT', `${pathOf(slug)}${query}`, body)
  const result = answer as PolicyResult
  const shown = await findVersion(context, slug, result.version)
  const diff = context.json ? '' : await findDiff(context, result, shown)
  context.out(toPrinted({ ...result, ...shown }), () => toSetText(result, diff))
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

async function showPresets(
  context: CliContext,
  [name]: readonly (string | undefined)[],
): Promise<void> {
  if (name === undefined) {
    const presets = (await context.adminFetch('GET', '/policy-presets')) as Presets
    context.out(presets, ({ data }) =>
      toColumns<Presets['data'][number]>(
        [
          ['PRESET', 'name'],
          ['HASH', ({ policy_hash: hash }) => hash.slice(0, 8)],
        ],
        data,
      ),
    )
    return
  }
  const shown = `/policy-presets/${encodeURIComponent(name)}`
  const preset = (await context.adminFetch('GET', shown)) as Preset
  context.out(toPrinted(preset), () => toPolicyText(preset.document, Date.now()))
}
