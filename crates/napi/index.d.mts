// Written by scripts/declarations.mjs: the declarations, for `import`, which has no default.
export * from './index.js'
