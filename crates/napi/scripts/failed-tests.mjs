// A reporter for `node --test` that prints the file and the name of each failed test, one per line.

export default async function* failedTests(source) {
  for await (const { type, data } of source) {
    const isOwn = type === 'test:fail' && data.details.error.failureType !== 'subtestsFailed'
    if (isOwn) yield `${data.file}\t${data.name}\n`
  }
}
