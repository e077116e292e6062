/** `di tenants apps ...`: the apps of a tenant, whose evidence counts. */
import { Option } from 'commander'
import { appPlatforms } from '#shared/core/installs/tenant-apps.ts'
import { type Answer, change, command, group, read } from '../commands.ts'
import { type CliContext, CliError, toTenantPath } from '../context.ts'
import { type Column, toFields } from '../tables.ts'

const path = '/tenants/{tenant_id}/apps'

type App = Answer<typeof path>['data'][number]

const columns: readonly Column<App>[] = [
  ['PLATFORM', 'platform'],
  ['ID', 'id'],
  ['SIGNED BY', ({ signers, team }) => (team === null ? signers.join(' ') : `team ${team}`)],
  ['PLAY KEYS', ({ play_keys: keys }) => (keys ? 'set' : '-')],
  ['DEVELOPMENT', ({ development }) => (development ? 'counts' : '-')],
]

type AddOptions = {
  android?: string
  ios?: string
  signer?: string[]
  team?: string
  playKeys?: string
  dropPlayKeys?: true
  development?: true
}

const playNote =
  'Going back to keys that Google manages, in the Play Console, ends these at once: every token is ' +
  'then rejected with decryption_failed.'

export const apps = group('apps', "a tenant's apps: evidence of a phone counts when it is of one", [
  read('list <slug>', 'list the apps, without keys', path, {
    columns,
    empty: 'There are no apps yet: all evidence is rejected with app_unknown.',
  }),
  command<AddOptions>(
    'add <slug>',
    'add an app, or replace the one of this platform and id',
    [
      ['--android <package>', 'an app for Android, such as com.example.app'],
      ['--ios <bundle>', 'an app for iOS'],
      new Option(
        '--signer <sha256...>',
        'Android: SHA-256 of the certificates that sign it, in hex or base64',
      ),
      ['--team <id>', 'iOS: the ten characters of the team at Apple'],
      [
        '--play-keys <file>',
        'Android: {"decryption_key":"BASE64","verification_key":"BASE64"} of the Play Console',
      ],
      ['--drop-play-keys', 'Android: forget the keys; without both options they stay as they are'],
      ['--development', "iOS: keys of App Attest's development environment count too"],
    ],
    async (context, [slug], options) => {
      const body = await toApp(context, options)
      const app = (await context.adminFetch('PUT', `${toTenantPath(slug!)}/apps`, body)) as Answer<
        typeof path,
        'put'
      >
      context.out(app, (added) =>
        options.playKeys === undefined ? toAppText(added) : `${toAppText(added)}\n\n${playNote}`,
      )
    },
  ),
  change(
    'remove <slug> <platform> <id>',
    `remove an app (${appPlatforms.join(' or ')}, and its package or bundle id)`,
    ['delete', `${path}/{platform}/{app_id}`],
    { text: ({ platform, id }) => `No edge verifies evidence of the ${platform} app ${id} now.` },
  ),
])

const toAppText = ({ platform, id, signers, team, play_keys: keys, development }: App): string =>
  toFields({
    platform,
    id,
    ...(platform === 'android'
      ? { signers: signers.join(' '), 'play keys': keys ? 'set' : 'none' }
      : { team, development: development ? 'counts' : 'rejected' }),
  })

/** @throws CliError for options that belong to the other platform */
async function toApp(context: CliContext, options: AddOptions): Promise<object> {
  const { android, ios, signer, team, playKeys, dropPlayKeys, development } = options
  if ((android === undefined) === (ios === undefined)) {
    throw new CliError('Give one of --android PACKAGE and --ios BUNDLE.')
  }
  if (ios !== undefined) {
    if (signer !== undefined || playKeys !== undefined || dropPlayKeys) {
      throw new CliError('--signer, --play-keys and --drop-play-keys are for --android.')
    }
    if (team === undefined) throw new CliError('An app for iOS needs --team.')
    return { platform: 'ios', id: ios, team, development: development === true }
  }
  if (team !== undefined || development) {
    throw new CliError('--team and --development are for --ios.')
  }
  if (signer === undefined) throw new CliError('An app for Android needs --signer.')
  if (playKeys !== undefined && dropPlayKeys) {
    throw new CliError('Give one of --play-keys and --drop-play-keys.')
  }
  return {
    platform: 'android',
    id: android,
    signers: signer,
    play_keys: dropPlayKeys ? null : await readKeys(context, playKeys),
  }
}

async function readKeys(context: CliContext, file: string | undefined) {
  if (file === undefined) return undefined
  // Its libraries are loaded for this option alone.
  const { readKeyTexts } = await import('../attestation/check-file.ts')
  return readKeyTexts(context, file)
}
