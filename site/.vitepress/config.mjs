// The site is made of the same Markdown that the hosting service shows. Links to
// pages become links of the site, links to everything else links to the repository.
import { existsSync, readdirSync, statSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitepress'

const root = fileURLToPath(new URL('../..', import.meta.url))
const repository = 'https://github.com/sluice-go/sluice'

// Pages are the landing page, the files at the root and those below docs.
const pages = new Set(['site/index.md', 'README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'COMPATIBILITY.md', 'SECURITY.md', 'RELEASING.md', 'CHANGELOG.md'])
const walk = (dir) => readdirSync(join(root, dir)).forEach((name) => {
  const path = join(dir, name)
  if (statSync(join(root, path)).isDirectory()) walk(path)
  else if (name.endsWith('.md')) pages.add(path)
})
walk('docs')

const rewrites = Object.fromEntries([...pages].filter((p) => p.endsWith('/README.md')).map((p) => [p, p.replace('README.md', 'index.md')]))
rewrites['site/index.md'] = 'index.md'
const original = Object.fromEntries(Object.entries(rewrites).map(([from, to]) => [to, from]))
const address = (page) => '/' + (rewrites[page] ?? page).replace(/(^|\/)index\.md$/, '$1').replace(/\.md$/, '')

// resolve turns a link of the page into one of the site.
function resolve(page, href) {
  if (/^([a-z]+:|#|\/)/.test(href)) return href
  const [path, anchor] = href.split('#')
  const target = normalize(join(dirname(page), path)).replace(/\/$/, '')
  const hash = anchor ? '#' + anchor : ''
  if (pages.has(target)) return address(target) + hash
  if (!existsSync(join(root, target))) throw new Error(`${page} links to ${href}, which does not exist`)
  const kind = statSync(join(root, target)).isDirectory() ? 'tree' : 'blob'
  return `${repository}/${kind}/main/${target}${hash}`
}

const guide = (name, text) => ({ text, link: `/docs/guides/${name}` })

export default defineConfig({
  title: 'sluice',
  description: 'Rate limits, concurrency limits and overload control for Go',
  srcDir: '..',
  srcExclude: ['{bench,examples,httpmw,programs,.github}/**', 'site/{dist,playground}/**', '**/node_modules/**'],
  outDir: 'dist',
  cacheDir: 'node_modules/.cache',
  cleanUrls: true,
  head: [['style', {}, '.vp-doc p > img { display: inline-block }']], // pictures flow as on the hosting service
  rewrites,
  // The pages are outside of this directory, and so cannot find its packages.
  vite: {
    resolve: {
      alias: [{ find: /^(vue|vue\/server-renderer)$/, replacement: join(root, 'site/node_modules/$1') }],
    },
    publicDir: false,
  },
  markdown: {
    config(md) {
      md.core.ruler.push('links', (state) => {
        const found = relative(root, state.env.realPath ?? state.env.path)
        const page = original[found] ?? found
        for (const block of state.tokens) {
          for (const token of block.children ?? []) {
            const href = token.type === 'link_open' && token.attrGet('href')
            if (href) token.attrSet('href', resolve(page, href))
          }
        }
      })
    },
  },
  themeConfig: {
    search: { provider: 'local' },
    outline: 'deep',
    socialLinks: [{ icon: 'github', link: repository }],
    nav: [
      { text: 'Guides', link: '/docs/guides/' },
      { text: 'Evidence', link: '/docs/evidence' },
      { text: 'Playground', link: '/playground/', target: '_self' },
      { text: 'Migration', link: '/docs/migrate/' },
      { text: 'Packages', link: 'https://pkg.go.dev/github.com/sluice-go/sluice' },
    ],
    sidebar: [
      { text: 'Start', items: [{ text: 'README', link: '/README' }, { text: 'Which way', link: '/docs/which-way' }, guide('', 'All guides'), guide('algorithms', 'Choose an algorithm'), guide('limits', 'Choose a limit'), guide('classic', 'nginx and Guava'), guide('http', 'HTTP'), guide('grpc', 'gRPC')] },
      {
        text: 'Tasks',
        items: [guide('plans', 'Users and plans'), guide('login', 'Login protection'), guide('overload', 'Overload'), guide('tenants', 'Tenants'), guide('fairness', 'Fairness'), guide('colors', 'Degraded service'),
          guide('tokens', 'Tokens and money'), guide('prepaid', 'Plans and credits'), guide('partners', 'A partner\'s limit'), guide('streams', 'Streams of tokens'), guide('redis', 'On Redis'), guide('clusters', 'Clusters and regions'), guide('testing', 'Testing')],
      },
      {
        text: 'Operation',
        items: [guide('clients', 'Responses and clients'), guide('proxies', 'Behind proxies'), guide('observability', 'Observability'), { text: 'Admin page', link: '/docs/admin/' },
          guide('production', 'Production checklist'), guide('troubleshooting', 'Troubleshooting'), guide('security', 'Security notes')],
      },
      {
        text: 'Reference',
        items: [{ text: 'Guarantees', link: '/docs/guarantees' }, { text: 'Evidence', link: '/docs/evidence' }, { text: 'Comparison', link: '/docs/comparison' },
          { text: 'Migration', link: '/docs/migrate/' }, { text: 'Track record', link: '/docs/track-record' },
          { text: 'Compatibility', link: '/COMPATIBILITY' }, { text: 'Architecture', link: '/ARCHITECTURE' }, { text: 'Changelog', link: '/CHANGELOG' }],
      },
    ],
  },
})
