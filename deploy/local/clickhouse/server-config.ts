// The text of the engine's own configuration files: the settings of the embedded
// ClickHouse, and its users with the default settings of their queries. Pure, so that tests can
// read it.

import { createHmac } from 'node:crypto'
import {
  analystChoices,
  analystGrants,
  analystQuota,
  analystRole,
  analystSettings,
  guardedTables,
  localAnalystSettings,
  readerSettings,
  readerUser,
  sharedTables,
  tenantOfUser,
  toRowFilter,
} from '#shared/core/analytics/analyst-access.ts'
import { clusterName } from '#shared/core/base/shards.ts'
import { clickhouseBackupFolder } from '#shared/io/backup/backup-folder.ts'

/** A user that the engine has from its start, with its grants. */
export type EngineUser = {
  /** Letters, digits and `_`. */
  name: string
  passwordSha256Hex: string
  /** Statements without a grantee, such as `GRANT SELECT ON device_intelligence.sessions`. */
  grants: readonly string[]
  /** Settings of its queries; the default profile's without it. */
  profile?: EngineProfile
  /** With the role and settings of a server's analyst; only tests have such a user here. */
  isAnalyst?: true
  /** With its quota as well. */
  hasQuota?: boolean
}

export type EngineProfile = {
  settings: Readonly<Record<string, number | string>>
  /** Settings that the user may not change. */
  fixed: readonly string[]
}

/** The engine as one of several shards on this machine, which have the same users. */
export type EngineShards = {
  /** The port of each shard's native protocol on 127.0.0.1, in their order. */
  ports: readonly number[]
  /** Which of them is this engine's, from 0. */
  own: number
}

/** The facts that determine the files. */
export type ServerConfigFacts = {
  /** ClickHouse's log level: `critical`, `debug`, `trace`. */
  logLevel: string
  /** SHA-256 of the password of user `default`, in hex; null leaves the server open. */
  passwordSha256Hex: string | null
  /** SHA-256 of the password of user `analyst`, which only the analysts' front uses. */
  analystPasswordSha256Hex: string
  /** Port on 127.0.0.1 of the startup gate (see startup-gate.ts); used only with a password. */
  startupGatePort: number | null
  /** The service's processes. They see the rows of every tenant, also through the views. */
  users: readonly EngineUser[]
  /** Null for an engine that is alone. */
  shards: (EngineShards & { secret: string }) | null
}

// Sized for a developer's machine that also runs everything else: half of the memory, and merges
// that leave one core to queries. Larger values would only queue for the same two cores.
const serverSizes = `
  <max_server_memory_usage_to_ram_ratio>0.5</max_server_memory_usage_to_ram_ratio>
  <max_concurrent_queries>1000</max_concurrent_queries>
  <background_pool_size>4</background_pool_size>
  <background_common_pool_size>2</background_common_pool_size>
  <background_schedule_pool_size>16</background_schedule_pool_size>`

// `clickhouse local` deletes merged source parts at once, and with them the way to undo a merge
// that a full disk cut short, which takes half a second to detect (see broken-parts.ts); a server
// keeps them for eight minutes. They are kept no longer than needed, because an erasure waits for
// their removal. Inserts stop before the disk is full, so that merges can finish.
const partSettings = `
  <merge_tree>
    <old_parts_lifetime>2</old_parts_lifetime>
    <min_free_disk_bytes_to_perform_insert>67108864</min_free_disk_bytes_to_perform_insert>
  </merge_tree>`

// The engine starts with the defaults of `clickhouse local`, unlike a server's. The last setting
// ends a read whose client has left.
const profileSettings = `
      <implicit_select>0</implicit_select>
      <cancel_http_readonly_queries_on_client_close>1</cancel_http_readonly_queries_on_client_close>`

/** Renders `config.xml`; `users.xml` is expected beside it. */
export function toServerConfigXml(facts: ServerConfigFacts): string {
  return `<clickhouse>
  <logger>
    <console>1</console>
    <formatting><type>json</type></formatting>
  </logger>
  <log-level>${facts.logLevel}</log-level>
  <display_name>embedded</display_name>
  <users_config>users.xml</users_config>
  <backups><allowed_path>${clickhouseBackupFolder}</allowed_path></backups>${serverSizes}${partSettings}${toStartupGateXml(facts)}${toShardsXml(facts)}
</clickhouse>
`
}

function toShardsXml({ shards }: ServerConfigFacts): string {
  if (shards === null) return ''
  const { ports, own, secret } = shards
  const replicas = ports.map(
    (port) => `
      <shard><replica><host>127.0.0.1</host><port>${port}</port></replica></shard>`,
  )
  return `
  <tcp_port>${ports[own]}</tcp_port>
  <remote_servers>
    <${clusterName}>
      <secret>${secret}</secret>${replicas.join('')}
    </${clusterName}>
  </remote_servers>`
}

/** The header with the tenant of an analyst's request; the front sets it. */
export const tenantHeader = 'X-Analyst-Tenant'

/** The engine's user as whom the front runs the queries of all analysts. */
export const analystUser = 'analyst'

const tenantOfRequest = `if(currentUser() = '${analystUser}', getClientHTTPHeader('${tenantHeader}'), ${tenantOfUser})`

/** The databases of the local stack; analysts are confined to the views of these. */
const internalDatabase = 'device_intelligence'
const analyticsDatabase = 'analytics'

/**
 * Renders `users.xml`, all for this machine only: `default` with all rights; `analyst`, who may
 * read the views; the service's processes; and the reader that the views run as, who cannot sign
 * in.
 */
export function toUsersXml(facts: ServerConfigFacts): string {
  return `<clickhouse>
  <profiles>
    <default>${profileSettings}
    </default>${toAnalystProfileXml('local_analyst', localAnalystSettings)}${toAnalystProfileXml('analyst', analystSettings)}${toReaderProfileXml()}${facts.users.map(toProfileXml).join('')}
  </profiles>
  <quotas>
    <default></default>${toQuotaXml()}
  </quotas>
  <roles>${toRoleXml()}
  </roles>
  <users>
    <default>${toAuthenticationXml(facts)}
      <networks><ip>127.0.0.1</ip><ip>::1</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
      <access_management>1</access_management>
      <named_collection_control>1</named_collection_control>
    </default>
    <${analystUser}>
      <password_sha256_hex>${facts.analystPasswordSha256Hex}</password_sha256_hex>
      <networks><ip>127.0.0.1</ip><ip>::1</ip></networks>
      <profile>local_analyst</profile>
      <quota>default</quota>
      <default_database>${analyticsDatabase}</default_database>
      <grants><query>GRANT ${analystRole}</query></grants>
    </${analystUser}>${facts.users.map(toUserXml).join('')}${toReaderXml(facts)}
  </users>
</clickhouse>
`
}

function toProfileXml({ name, profile }: EngineUser): string {
  if (profile === undefined) return ''
  const settings = Object.entries(profile.settings).map(
    ([setting, value]) => `<${setting}>${escapeXml(String(value))}</${setting}>`,
  )
  const constraints = profile.fixed.map((setting) => `<${setting}><const/></${setting}>`)
  return `
    <${name}>
      ${settings.join('\n      ')}
      <constraints>${constraints.join('')}</constraints>
    </${name}>`
}

function toRoleXml(): string {
  const grants = analystGrants(analyticsDatabase).map((grant) => `<query>${grant}</query>`)
  return `
    <${analystRole}>
      <grants>
        ${grants.join('\n        ')}
      </grants>
    </${analystRole}>`
}

function toProfileName({ name, profile, isAnalyst }: EngineUser): string {
  if (profile !== undefined) return name
  return isAnalyst ? 'analyst' : 'default'
}

function toUserXml(user: EngineUser): string {
  const { name, passwordSha256Hex, grants, isAnalyst, hasQuota } = user
  const own = isAnalyst ? [`GRANT ${analystRole}`, ...grants] : grants
  if (!/^[\w.]+$/.test(name) || !/^[\da-f]{64}$/.test(passwordSha256Hex)) {
    throw new Error(`not a user of the engine: ${name}`)
  }
  return `
    <${name}>
      <password_sha256_hex>${passwordSha256Hex}</password_sha256_hex>
      <networks><ip>127.0.0.1</ip><ip>::1</ip></networks>
      <profile>${toProfileName(user)}</profile>
      <quota>${hasQuota ? 'analyst' : 'default'}</quota>
      <grants>
        ${own.map((grant) => `<query>${escapeXml(grant)}</query>`).join('\n        ')}
      </grants>
    </${name}>`
}

const escapeXml = (text: string) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')

function toAnalystProfileXml(name: string, settings: typeof analystSettings): string {
  const values = Object.entries(settings).map(
    ([setting, value]) => `<${setting}>${value}</${setting}>`,
  )
  const choices = Object.entries(analystChoices).map(([setting, range]) => {
    const limits = range ? `<min>${range.min}</min><max>${range.max}</max>` : ''
    return `<${setting}>${limits}<changeable_in_readonly/></${setting}>`
  })
  return `
    <${name}>
      ${values.join('\n      ')}
      <constraints>
        ${choices.join('\n        ')}
      </constraints>
    </${name}>`
}

function toQuotaXml(): string {
  const intervals = analystQuota.map(
    ({ seconds, queries, executionSeconds }) => `
      <interval>
        <duration>${seconds}</duration>
        <queries>${queries}</queries>
        <execution_time>${executionSeconds}</execution_time>
      </interval>`,
  )
  return `
    <analyst>${intervals.join('')}
    </analyst>`
}

function toReaderProfileXml(): string {
  const settings = Object.entries({ ...readerSettings, allow_get_client_http_header: 1 })
  return `
    <${readerUser}>
      ${settings.map(([name, value]) => `<${name}>${value}</${name}>`).join('\n      ')}
      <constraints>
        ${settings.map(([name]) => `<${name}><const/></${name}>`).join('\n        ')}
      </constraints>
    </${readerUser}>`
}

// No password has this hash, and no address is among its networks.
function toReaderXml({ users }: ServerConfigFacts): string {
  const processes = users.filter(({ isAnalyst }) => !isAnalyst).map(({ name }) => name)
  const services = ['default', ...processes]
  const filter = toRowFilter(services, tenantOfRequest)
  const tables = [...guardedTables, ...sharedTables].map(
    (table) => `<query>GRANT SELECT ON ${internalDatabase}.${table}</query>`,
  )
  const policies = guardedTables.map((table) => `<${table}><filter>${filter}</filter></${table}>`)
  return `
    <${readerUser}>
      <password_sha256_hex>${'0'.repeat(64)}</password_sha256_hex>
      <networks></networks>
      <profile>${readerUser}</profile>
      <quota>default</quota>
      <grants>
        ${tables.join('\n        ')}
      </grants>
      <databases><${internalDatabase}>
        ${policies.join('\n        ')}
      </${internalDatabase}></databases>
    </${readerUser}>`
}

// The password first: a request with the correct one never reaches the startup gate.
function toAuthenticationXml({ passwordSha256Hex }: ServerConfigFacts): string {
  if (passwordSha256Hex === null) return '<password></password>'
  return `
      <auth_methods>
        <password><password_sha256_hex>${passwordSha256Hex}</password_sha256_hex></password>
        <boot>
          <http_authentication><server>boot</server><scheme>basic</scheme></http_authentication>
        </boot>
      </auth_methods>`
}

function toStartupGateXml({ passwordSha256Hex, startupGatePort }: ServerConfigFacts): string {
  if (passwordSha256Hex === null || startupGatePort === null) return ''
  return `
  <http_authentication_servers>
    <boot>
      <uri>http://127.0.0.1:${startupGatePort}/</uri>
      <max_tries>1</max_tries>
      <connection_timeout_ms>1000</connection_timeout_ms>
      <receive_timeout_ms>1000</receive_timeout_ms>
      <send_timeout_ms>1000</send_timeout_ms>
    </boot>
  </http_authentication_servers>`
}

/** Statements that the engine runs first: listen, then write its port to `portFile`. */
export function toBootSql(portFile: string, isShard: boolean): string {
  const quoted = portFile.replaceAll('\\', '\\\\').replaceAll("'", "\\'")
  return `${isShard ? 'SYSTEM START LISTEN TCP;\n' : ''}SYSTEM START LISTEN HTTP;
SELECT getServerPort('http_port') INTO OUTFILE '${quoted}' TRUNCATE FORMAT TSV;
`
}

/** The password of user `analyst`, derived from that of `default` so that it cannot be guessed. */
export function toAnalystPassword(password: string): string {
  return createHmac('sha256', password).update('analyst').digest('hex')
}

/** With it a shard queries the others as the user who queries it; derived as the password above. */
export function toShardsSecret(password: string): string {
  return createHmac('sha256', password).update('shards').digest('hex')
}
