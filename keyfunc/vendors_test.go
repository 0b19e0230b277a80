package keyfunc_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/keyfunc"
)

// The client's address in the headers of delivery networks and balancers, in the
// spelling of each vendor's documentation. With 128 bits every part of it matters.
func TestHeadersOfVendors(t *testing.T) {
	for _, row := range []struct{ header, value, want string }{
		// docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/adding-cloudfront-headers.html:
		// an address and the source port. IPv6 comes without brackets.
		{"CloudFront-Viewer-Address", "198.51.100.10:46532", "198.51.100.10"},
		{"CloudFront-Viewer-Address", "[2001:db8:1:2::7]:46532", "2001:db8:1:2::7"},
		{"CloudFront-Viewer-Address", "2001:db8:1:2:3:4:5:6:46532", "2001:db8:1:2:3:4:5:6"},
		{"CloudFront-Viewer-Address", "2001:0db8:0001:0002:0003:0004:0005:0006:443", "2001:db8:1:2:3:4:5:6"},
		{"CloudFront-Viewer-Address", "2001:db8::7:4653", "2001:db8::7"},
		{"CloudFront-Viewer-Address", "2001:db8::a:b:c:d:e:1", "2001:db8:0:a:b:c:d:e"},
		// docs.aws.amazon.com/elasticloadbalancing/latest/application/x-forwarded-headers.html:
		// with the client port preserved, or without.
		{"X-Forwarded-For", "198.51.100.10", "198.51.100.10"},
		{"X-Forwarded-For", "198.51.100.10:46532", "198.51.100.10"},
		{"X-Forwarded-For", "2001:DB8::21f:5bff:febf:ce22:8a2e", "2001:db8:0:21f:5bff:febf:ce22:8a2e"},
		{"X-Forwarded-For", "[2001:db8:1:2::7]:46532", "2001:db8:1:2::7"},
		// azure.microsoft.com/en-us/blog/rewrite-http-headers-with-azure-application-gateway:
		// a comma-separated list of IP:port.
		{"X-Forwarded-For", "192.0.2.9:1024, 198.51.100.10:46532", "198.51.100.10"},
		// learn.microsoft.com/en-us/azure/frontdoor/front-door-http-headers-protocol
		{"X-Azure-ClientIP", "198.51.100.10", "198.51.100.10"},
		{"X-Azure-SocketIP", "2001:db8:1:2::7", "2001:db8:1:2::7"},
		// developers.cloudflare.com/fundamentals/reference/http-headers
		{"CF-Connecting-IP", "198.51.100.10", "198.51.100.10"},
		{"CF-Connecting-IP", "2001:db8:1:2::7", "2001:db8:1:2::7"},
		{"CF-Connecting-IPv6", "2001:db8:1:2::7", "2001:db8:1:2::7"},
		// techdocs.akamai.com/property-mgr/docs/true-client-ip; Cloudflare has it too.
		{"True-Client-IP", "198.51.100.10", "198.51.100.10"},
		// fastly.com/documentation/reference/http/http-headers/Fastly-Client-IP: a client's own
		// header stays unless the service replaces it.
		{"Fastly-Client-IP", "198.51.100.10", "198.51.100.10"},
		// cloud.google.com/load-balancing/docs/https: client, balancer.
		{"X-Forwarded-For", "192.0.2.9,198.51.100.10,10.0.0.9", "198.51.100.10"},
		// www.tencentcloud.com/document/product/1145/54211
		{"EO-Connecting-IP", "198.51.100.10", "198.51.100.10"},
		// www.alibabacloud.com/help/en/cdn/user-guide/configure-custom-request-headers
		{"Ali-Cdn-Real-Ip", "198.51.100.10", "198.51.100.10"},
		// fly.io/docs/networking/request-headers
		{"Fly-Client-IP", "2001:db8:1:2::7", "2001:db8:1:2::7"},
		// nginx.org/en/docs/http/ngx_http_proxy_module.html: X-Real-IP is $remote_addr, or
		// $remote_addr:$remote_port as some set it.
		{"X-Real-IP", "198.51.100.10", "198.51.100.10"},
		{"X-Real-IP", "198.51.100.10:46532", "198.51.100.10"},
		// www.envoyproxy.io/docs/envoy/latest/configuration/http/http_conn_man/headers
		{"X-Envoy-External-Address", "198.51.100.10", "198.51.100.10"},
	} {
		t.Run(row.header+" "+row.value, func(t *testing.T) {
			key := config(t, keyfunc.IPConfig{Trusted: ours, Header: row.header, IPv6Bits: 128})
			require.Equal(t, row.want, keyOf(t, key, request("10.0.0.1:1", row.header, row.value)))
		})
	}
}
