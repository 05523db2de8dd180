'use strict'
// Delivery of log records to JavaScript: the addon wakes it when records wait, and the rest is
// taken at exit.

const { caller } = require('./callbacks.js')
const { checkType } = require('./refusals.js')

/** Milliseconds of callbacks after which the event loop runs other work. */
const TIME_SLICE = 8

/** Starts the engine. If the options have a `log` callback, it gets the records of `takeLog`. */
function startLogging(start, takeLog, options) {
  if (options.log === undefined) return start(options)
  const { log, ...rest } = options
  checkType('options.log', 'function', log)
  const call = caller('start')
  const records = []
  /** Calls the callback with records, until there are none or the time is over. */
  const deliver = (until) => {
    do {
      if (records.length === 0) records.push(...JSON.parse(takeLog() ?? '[]'))
      if (records.length === 0) return
      call(log, records.shift())
    } while (performance.now() < until)
    // An idle event loop drops an unreferenced `setImmediate`.
    setTimeout(deliverSlice).unref()
  }
  const deliverSlice = () => deliver(performance.now() + TIME_SLICE)
  start(rest, deliverSlice)
  process.once('exit', () => deliver(Infinity))
}

module.exports = { startLogging }
