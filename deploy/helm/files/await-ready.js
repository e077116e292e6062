// node -e "$(cat await-ready.js)" URL SECONDS: waits until the URL answers 200. It ends with success
// after the time too, so that an upgrade that stands still stops no restart of a pod.
const [, url, seconds] = process.argv
const untilMs = Date.now() + Number(seconds) * 1000
const isReady = () =>
  fetch(url, { signal: AbortSignal.timeout(2000) }).then(
    (answer) => answer.ok,
    () => false,
  )
const wait = async () => {
  while (!(await isReady())) {
    if (Date.now() >= untilMs) {
      process.stdout.write(`${url} is not ready after ${seconds} s; starting without it\n`)
      return
    }
    await new Promise((resolve) => setTimeout(resolve, 1000))
  }
}
wait()
