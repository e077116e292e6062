/** Posts to a console's admin API. */

/** @throws with the answer's text when it is not a success */
export async function callAdmin(
  url: string,
  token: string,
  path: string,
  body: object,
): Promise<Record<string, unknown>> {
  const response = await fetch(`${url}/admin/v1${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  const text = await response.text()
  if (!response.ok) throw new Error(`${path}: ${response.status} ${text}`)
  return JSON.parse(text) as Record<string, unknown>
}
