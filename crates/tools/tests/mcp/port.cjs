// Loaded before a server: prints the port on which it listens.
const { Server } = require("node:net")

const listen = Server.prototype.listen
Server.prototype.listen = function (...args) {
  this.once("listening", () => process.stdout.write(`port ${this.address().port}\n`))
  return listen.apply(this, args)
}
