import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** Views that are lists; the larger ones are fetched apart. */
const lists = /[\\/]views[\\/](?:now|overview|inbox|threads|logs|events|automations|settings)[\\/]/;

/** `vite build -c src/ui/vite.config.ts` writes the page to `dist/ui`. */
export default defineConfig({
  root: here('.'),
  base: './',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  build: {
    outDir: here('../../dist/ui'),
    emptyOutDir: true,
    target: 'es2022',
    // A data: URL would need more from the content security policy than the page needs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Notices of the libraries that are in the page.
    license: { fileName: 'licenses.txt' },
    rolldownOptions: {
      output: {
        hashCharacters: 'hex',
        entryFileNames: 'assets/[name]-[hash:10].js',
        chunkFileNames: 'assets/[name]-[hash:10].js',
        // Few requests: the initial code is one script, and the code that several views share is another. Machines and their
        // interpreter stay apart, because few views run one.
        codeSplitting: {
          groups: [
            { name: 'index', tags: ['$initial'], priority: 1 },
            // Lists of the Hub and of a workspace weigh a quarter less together than apart.
            { name: 'lists', test: lists, priority: 0.5 },
            // Views that are also lenses of a conversation.
            { name: 'sessions', test: /[\\/]views[\\/]sessions[\\/]/, priority: 0.4 },
            { name: 'actors', test: /[\\/]views[\\/]actors[\\/](?!drawn)/, priority: 0.4 },
            { name: 'shared', test: (id) => !/[\\/](?:xstate|machines)[\\/]/.test(id), minShareCount: 2 },
          ],
        },
        assetFileNames: 'assets/[name]-[hash:10][extname]',
      },
    },
  },
});
