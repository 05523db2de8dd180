'use strict'
// The package, for `require`: a class of all functions, and the functions, of the engine in this process.

const { toCallback, iterate } = require('./events.js')
const { Sessions, connect, start, version } = require('./native.js')

const { sessionAttach } = Sessions.prototype

Sessions.prototype.sessionAttach = async function (id, callback, options) {
  const { onEnd, onError, ...rest } = options ?? {}
  return sessionAttach.call(this, id, toCallback(callback, { onEnd, onError }), rest)
}

Sessions.prototype.sessionEvents = function (id, options) {
  const attach = (deliver, rest) => sessionAttach.call(this, id, deliver, rest, true)
  return iterate(attach, (attachment) => this.sessionDetach(id, attachment), options)
}

const here = Sessions.here()

module.exports = { Sessions, connect, start, version }
for (const name of Object.getOwnPropertyNames(Sessions.prototype)) {
  if (name !== 'constructor') module.exports[name] = here[name].bind(here)
}
