// node -e "$(cat smoke-test.js)" EDGE URL...: every readiness URL must answer 200, and the edge must
// refuse a submission without a signature. It tries for a minute.
const [, edge, ...readiness] = process.argv
const statusOf = (url, options = {}) =>
  fetch(url, { ...options, signal: AbortSignal.timeout(5000) }).then(
    (answer) => answer.status,
    (error) => String(error.cause ?? error),
  )
const unsigned = {
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: '{}',
}
const findFaults = async () => {
  const expected = [
    [`${edge}/v1/rasp/ingest`, 401, unsigned],
    ...readiness.map((url) => [url, 200]),
  ]
  const found = await Promise.all(
    expected.map(async ([url, status, options]) => {
      const got = await statusOf(url, options)
      return got === status ? [] : [`${url}: ${got}, expected ${status}`]
    }),
  )
  return found.flat()
}
const check = async () => {
  const untilMs = Date.now() + 60_000
  let faults = await findFaults()
  while (faults.length > 0 && Date.now() < untilMs) {
    await new Promise((resolve) => setTimeout(resolve, 2000))
    faults = await findFaults()
  }
  process.stdout.write(faults.length === 0 ? 'every process is ready\n' : `${faults.join('\n')}\n`)
  process.exitCode = faults.length === 0 ? 0 : 1
}
check()
