import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';
import page from '../vite.config.ts';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

/** `vite build -c src/ui/inspector/vite.config.ts` writes the page of the inspector package to `dist/inspector/page`. */
export default defineConfig({
  ...page,
  root: here('.'),
  publicDir: false,
  build: {
    ...page.build,
    outDir: here('../../../dist/inspector/page'),
    // elkjs, which is fetched for the first chart.
    chunkSizeWarningLimit: 2_000,
    rolldownOptions: {
      output: {
        hashCharacters: 'hex',
        entryFileNames: 'assets/[name]-[hash:10].js',
        chunkFileNames: 'assets/[name]-[hash:10].js',
        assetFileNames: 'assets/[name]-[hash:10][extname]',
      },
    },
  },
});
