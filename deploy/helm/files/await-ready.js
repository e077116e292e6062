// node -e "$(cat await-ready.js)" SECONDS URL...: waits until one of the URLs answers 200. It ends
// with success after the time too, so that an upgrade that stands still stops no restart of a pod.
const [, seconds, ...urls] = process.argv
const untilMs = Date.now() + Number(seconds) * 1000
const isReady = (url) =>
  fetch(url, { signal: AbortSignal.timeout(2000) }).then(
    (answer) => answer.ok,
    () => false,
  )
const wait = async () => {
  while (!(await Promise.all(urls.map(isReady))).includes(true)) {
    if (Date.now() >= untilMs) {
      process.stdout.write(`${urls[0]} is not ready after ${seconds} s; starting without it\n`)
      return
    }
    await new Promise((resolve) => setTimeout(resolve, 1000))
  }
}
wait()
