// A reporter for `node --test`: the file and the name of each test that failed, one a line.

export default async function* failedTests(source) {
  for await (const { type, data } of source) {
    const isOwn = type === 'test:fail' && data.details.error.failureType !== 'subtestsFailed'
    if (isOwn) yield `${data.file}\t${data.name}\n`
  }
}
