// How other clients reach this society, ready to be copied. The token is left to the reader.

import { prefix } from '../../router'

export interface Snippet {
  name: string
  code: string
}

export function snippets(): Snippet[] {
  const here = location.origin + prefix()
  return [
    {
      name: 'curl',
      code: `TOKEN=$(cat .polis/token)
curl -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\
     -d '{"text": "read README.md"}' ${here}/api/submit
curl -N -H "Authorization: Bearer $TOKEN" '${here}/api/events?after=0'`,
    },
    {
      name: 'OpenAI',
      code: `from openai import OpenAI

client = OpenAI(base_url="${here}/v1", api_key=open(".polis/token").read().strip())
reply = client.chat.completions.create(
    model="root", messages=[{"role": "user", "content": "read README.md"}])
print(reply.choices[0].message.content)`,
    },
    {
      name: 'AG-UI',
      code: `import { HttpAgent } from "@ag-ui/client"

const agent = new HttpAgent({
  url: "${here}/agui/root",
  headers: { Authorization: \`Bearer \${token}\` },
})`,
    },
    {
      name: 'A2A',
      code: `# the card, and the endpoint that it names
curl ${here}/.well-known/agent-card.json
${here}/a2a`,
    },
    {
      name: 'MCP',
      code: `{
  "mcpServers": {
    "polis": {
      "type": "http",
      "url": "${here}/mcp",
      "headers": { "Authorization": "Bearer \${POLIS_TOKEN}" }
    }
  }
}`,
    },
    { name: 'polis', code: `polis run "read README.md"\npolis chat\npolis approvals\npolis log --follow` },
  ]
}
