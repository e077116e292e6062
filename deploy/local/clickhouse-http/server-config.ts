// The text of the engine's own configuration files: what the embedded ClickHouse is told before it
// starts. Pure, so that a test can read it. Two files, as ClickHouse wants them: the server's
// settings, and the users with the settings their queries begin with.

/** What the files depend on. Hashes and ports only: nothing here needs escaping. */
export type ServerConfigFacts = {
  /** ClickHouse's own name for how much it logs: `critical`, `debug`, `trace`. */
  logLevel: string
  /** SHA-256 of the password of user `default`, in hex; null leaves the server open. */
  passwordSha256Hex: string | null
  /** Port on 127.0.0.1 of the boot door (see boot-door.ts); used only with a password. */
  bootDoorPort: number | null
}

// Sized for a developer's machine that also runs everything else: half of the memory, and merges
// that leave a core to the queries. Larger values only queue up behind the same two cores.
const serverSizes = `
  <max_server_memory_usage_to_ram_ratio>0.5</max_server_memory_usage_to_ram_ratio>
  <max_concurrent_queries>1000</max_concurrent_queries>
  <background_pool_size>4</background_pool_size>
  <background_common_pool_size>2</background_common_pool_size>
  <background_schedule_pool_size>16</background_schedule_pool_size>`

// The engine starts with a shell's conveniences; a server does not have them. The last one ends a
// read whose reader has gone away.
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
  <users_config>users.xml</users_config>${serverSizes}${toBootDoorXml(facts)}
</clickhouse>
`
}

/** Renders `users.xml`: one user, `default`, who may do everything and only from this machine. */
export function toUsersXml(facts: ServerConfigFacts): string {
  return `<clickhouse>
  <profiles>
    <default>${profileSettings}
    </default>
  </profiles>
  <quotas><default></default></quotas>
  <users>
    <default>${toAuthenticationXml(facts)}
      <networks><ip>127.0.0.1</ip><ip>::1</ip></networks>
      <profile>default</profile>
      <quota>default</quota>
      <named_collection_control>1</named_collection_control>
    </default>
  </users>
</clickhouse>
`
}

// The password first: a request that has it never gets as far as the boot door.
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

function toBootDoorXml({ passwordSha256Hex, bootDoorPort }: ServerConfigFacts): string {
  if (passwordSha256Hex === null || bootDoorPort === null) return ''
  return `
  <http_authentication_servers>
    <boot>
      <uri>http://127.0.0.1:${bootDoorPort}/</uri>
      <max_tries>1</max_tries>
      <connection_timeout_ms>1000</connection_timeout_ms>
      <receive_timeout_ms>1000</receive_timeout_ms>
      <send_timeout_ms>1000</send_timeout_ms>
    </boot>
  </http_authentication_servers>`
}

/** Statements the engine runs first: listen, then write the port it got to `portFile`. */
export function toBootSql(portFile: string): string {
  const quoted = portFile.replaceAll('\\', '\\\\').replaceAll("'", "\\'")
  return `SYSTEM START LISTEN HTTP;
SELECT getServerPort('http_port') INTO OUTFILE '${quoted}' TRUNCATE FORMAT TSV;
`
}
