import { defineConfig } from 'vite'

export default defineConfig({
  base: '/',
  build: {
    target: 'es2023',
    cssTarget: ['chrome123', 'firefox120', 'safari17.5'],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: {
      output: {
        // All that is needed at the start is one file: it packs better than several, and has one set of headers.
        codeSplitting: { groups: [{ name: 'page', tags: ['$initial'] }] },
      },
    },
  },
  oxc: { jsx: { runtime: 'automatic' } },
})
