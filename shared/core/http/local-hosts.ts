/** Which addresses may be used without TLS: those of this machine. */

const localHosts = new Set(['localhost', '127.0.0.1', '[::1]'])

/** @param url an http or https URL */
export function isSecureOrLocal(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'https:' || localHosts.has(hostname)
}
