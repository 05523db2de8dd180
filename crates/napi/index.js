'use strict'
// The package, for `require`: a class of all functions, and the functions, of the engine in this process.

const { iterate, toCallback } = require('./events.js')
const { startLogging } = require('./log.js')
const native = require('./native.js')
const { checkType, optionsOf, promised, thrown } = require('./refusals.js')

const { Sessions, clientOrigin, connect, start, takeLog, version } = native

/** What is read at once. All else gives a promise. */
const AT_ONCE = new Set(['sessionGetStatus', 'sessionGetPauseState', 'sessionSnapshot'])

const own = Sessions.prototype
for (const name of Object.getOwnPropertyNames(own)) {
  if (name !== 'constructor') own[name] = AT_ONCE.has(name) ? thrown(own[name], name) : promised(own[name], name)
}

const { sessionAttach } = own

own.sessionAttach = async function (id, callback, options) {
  checkType('id', 'string', id)
  const { onEnd, onError, ...rest } = optionsOf(options, ['after', 'limit', 'keepAlive', 'onEnd', 'onError'])
  return sessionAttach.call(this, id, toCallback(callback, { onEnd, onError }), rest)
}

own.sessionEvents = function (id, options) {
  const attach = (deliver, rest) => sessionAttach.call(this, id, deliver, rest, true)
  return iterate(attach, (attachment) => this.sessionDetach(id, attachment), options)
}

/** A class of the addon that programs make objects of, with errors of this package. */
function constructible(name) {
  const { prototype } = native[name]
  for (const [member, { value }] of Object.entries(Object.getOwnPropertyDescriptors(prototype))) {
    if (member !== 'constructor' && value) prototype[member] = thrown(value, `${name}.${member}`)
  }
  const construct = (made, args, target) => thrown(() => Reflect.construct(made, args, target), name)(...args)
  return new Proxy(native[name], { construct })
}

const here = Sessions.here()

module.exports = {
  Sessions,
  AskForm: constructible('AskForm'),
  AfterAsk: constructible('AfterAsk'),
  clientOrigin: thrown(clientOrigin, 'clientOrigin'),
  connect: promised(connect, 'connect'),
  start: (options) => startLogging(thrown(start, 'start'), takeLog, optionsOf(options, ['config', 'stateDir', 'log'])),
  version,
}
for (const name of Object.getOwnPropertyNames(own)) {
  if (name !== 'constructor') module.exports[name] = here[name].bind(here)
}
