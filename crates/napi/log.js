'use strict'
// How what is logged reaches JavaScript: when it is told that records wait, it takes them, and at its exit what is left.

const { caller } = require('./callbacks.js')
const { checkType } = require('./refusals.js')

/** Milliseconds of callbacks after which other things have their turn. */
const SLICE = 8

/** Starts with options, of which `log` is called with the records that `takeLog` gives. */
function startLogging(start, takeLog, options) {
  if (options.log === undefined) return start(options)
  const { log, ...rest } = options
  checkType('options.log', 'function', log)
  const call = caller('start')
  const taken = []
  /** Calls with records, for as long as there are some and there is time. */
  const tell = (until) => {
    do {
      if (taken.length === 0) taken.push(...JSON.parse(takeLog() ?? '[]'))
      if (taken.length === 0) return
      call(log, taken.shift())
    } while (performance.now() < until)
    // Not `setImmediate`, which an idle loop forgets if it does not stay for it.
    setTimeout(tellSome).unref()
  }
  const tellSome = () => tell(performance.now() + SLICE)
  start(rest, tellSome)
  process.once('exit', () => tell(Infinity))
}

module.exports = { startLogging }
